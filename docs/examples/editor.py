#!/usr/bin/python3
"""editor.py: an editor with a window for each document, without the windows: their text is the status and the snapshot.

    greenroomctl open editor:report            opens a document in a window of its own
    greenroomctl open 'editor:report?text'     and adds a line to it
    greenroomctl activate editor --scene report
    greenroomctl snapshot editor               what it shows

The documents are in STATE_DIRECTORY; what is not written yet is in the restoration state.
"""
import os

import greenroom

app = greenroom.App()
folder = os.environ.get("STATE_DIRECTORY", ".")
# The lines that are not written yet, by document. "main" is the document of the first window.
unsaved = app.restore({})
windows = {"main": True}  # whether each window is shown


def show():
    shown = [name for name, is_shown in windows.items() if is_shown]
    app.status("shows " + (", ".join(shown) or "nothing"))


def read(name):
    try:
        with open(os.path.join(folder, name + ".txt")) as file:
            return file.read().splitlines() + unsaved.get(name, [])
    except FileNotFoundError:
        return unsaved.get(name, [])


@app.on_url
def open_document(url):
    name, _, line = url.removeprefix("editor:").partition("?")
    if not name.isidentifier():
        return
    if line:
        unsaved.setdefault(name, []).append(line)
        app.save(unsaved)
    windows[name] = True
    app.begin_scene(name)
    show()


@app.on_scene
def scene_changed(name, notice):
    match notice:
        case "sceneWillConnect" | "sceneDidEnterBackground":
            windows[name] = False
        case "sceneWillEnterForeground" | "sceneDidBecomeActive":
            windows[name] = True
        case "sceneDidDisconnect":
            windows.pop(name, None)
    show()


@app.on_background
def write_documents():
    for name, lines in list(unsaved.items()):
        with open(os.path.join(folder, name + ".txt"), "a") as file:
            file.writelines(line + "\n" for line in lines)
        del unsaved[name]
    app.save(unsaved)


@app.on_snapshot
def snapshot():
    pages = [f"{name}: " + " / ".join(read(name)[-3:]) for name in windows]
    return "\n".join(pages).encode(), "text/plain"


for document in unsaved:
    windows[document] = True
    app.begin_scene(document)
show()
app.run()
