#!/usr/bin/python3
"""editor.py: an editor with a window for each document, without the windows: their text is the status and the snapshot.

    greenroomctl open editor:report            opens a document in a window of its own
    greenroomctl open 'editor:report?text'     and adds a line to it
    greenroomctl activate editor --scene report
    greenroomctl snapshot editor               what it shows, and one of its windows:
    greenroomctl snapshot editor --scene report
    greenroomctl close editor --scene report

The documents are in STATE_DIRECTORY; what is not written yet is in the restoration state of its window. After the process has ended, the
window that was in front comes back with the app, and the others when they are activated.
"""
import os

import greenroom

app = greenroom.App()
folder = os.environ.get("STATE_DIRECTORY", ".")
# The lines that are not written yet, by window, and the windows that are shown.
unsaved = {}
shown = set()


def show():
    app.status("shows " + (", ".join(sorted(shown)) or "nothing"))


def connect(name):
    if name not in unsaved:
        unsaved[name] = app.restore([], scene=name)


def read(name):
    try:
        with open(os.path.join(folder, name + ".txt")) as file:
            return file.read().splitlines() + unsaved[name]
    except FileNotFoundError:
        return unsaved[name]


@app.on_url
def open_document(url):
    name, _, line = url.removeprefix("editor:").partition("?")
    if not name.isidentifier():
        return
    connect(name)
    if line:
        unsaved[name].append(line)
        app.save(unsaved[name], scene=name)
    app.begin_scene(name)


@app.on_scene
def scene_changed(name, notice):
    match notice:
        case "sceneWillConnect":
            connect(name)
        case "sceneWillEnterForeground" | "sceneDidBecomeActive":
            shown.add(name)
        case "sceneDidEnterBackground":
            shown.discard(name)
        case "sceneDidDisconnect":
            # Its lines are in its restoration state.
            unsaved.pop(name, None)
            shown.discard(name)
    show()


@app.on_background
def write_documents():
    for name, lines in unsaved.items():
        if lines:
            with open(os.path.join(folder, name + ".txt"), "a") as file:
                file.writelines(line + "\n" for line in lines)
            lines.clear()
            app.save(lines, scene=name)


def page(name):
    return f"{name}: " + " / ".join(read(name)[-3:])


@app.on_snapshot
def snapshot():
    return "\n".join(page(name) for name in unsaved).encode(), "text/plain"


@app.on_scene_snapshot
def scene_snapshot(name):
    return page(name).encode(), "text/plain"


connect("main")
show()
app.run()
