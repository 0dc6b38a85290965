#!/usr/bin/python3
"""The app of the contract tests in Python. contract_app.c and GreenroomTests have the same app in C and Swift."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Sources/Python"))
import greenroom  # noqa: E402

app = greenroom.App()
count = 0


def say(text):
    """Every action is visible in the transcript, as a summary."""
    try:
        app.summary(text)
    except greenroom.Refused as error:
        app.summary(f"refused: {error}")


@app.on_active
def active(cause):
    say(f"active {cause}")


@app.on_inactive
def inactive(cause):
    say(f"inactive {cause}")


@app.on_foreground
def foreground():
    say("foreground")


@app.on_background
def background():
    global count
    count += 1
    try:
        app.save_bytes(str(count).encode())
    except greenroom.Refused as error:
        say(f"not saved: {error}")


@app.on_terminate
def terminate(reason):
    say(f"terminate {reason}")


@app.on_memory_warning
def memory_warning(level):
    say(f"memory {level}")


@app.on_expiring
def expiring(names):
    say(f"expiring {' '.join(names)}")


@app.on_push
def push(payload):
    if payload == "task":
        try:
            with app.task("push"):
                say("task")
        except greenroom.Refused as error:
            say(f"no task: {error}")
            return greenroom.Result.FAILED
    if payload == "progress":
        with app.task("push") as task:
            task.progress(0, 10, "Copying")
            say("half")
            task.progress(10, 10)
    if payload == "mode":
        try:
            with app.mode("audio"), app.mode("audio"):
                say("mode")
        except greenroom.Refused as error:
            say(f"no mode: {error}")
            return greenroom.Result.FAILED
    if payload == "scene":
        try:
            app.begin_scene("tools", "panel")
            say("scene")
            app.end_scene("tools")
        except greenroom.Refused as error:
            say(f"no scene: {error}")
            return greenroom.Result.FAILED
    if payload == "large":
        say("x" * 100_000)
    return payload != "none"


@app.on_wake
def wake(reason):
    say(f"wake {reason}")
    return greenroom.Result.FAILED if reason == "fetch" else greenroom.Result.NEW_DATA


@app.on_url
def url(url):
    say(f"url {url}")


@app.on_notification
def notification(kind, payload):
    say(f"notification {kind} {payload}")


@app.on_withdraw
def withdraw():
    say("withdraw")


@app.on_suspend
def suspend():
    say("suspend")


@app.on_resume
def resume(seconds, changed):
    say(f"resume {seconds:.1f} {' '.join(changed)}".strip())


@app.on_scene
def scene(scene, notice, reason):
    say(f"scene {scene} {notice} {reason}".strip())


@app.on_discard
def discard(scenes):
    say(f"discarded {' '.join(scenes)}")


@app.on_snapshot
def snapshot():
    return f"page {count}".encode(), "text/plain"


@app.on_scene_snapshot
def scene_snapshot(scene):
    return scene.encode(), "text/plain"


state = app.restore_bytes()
if state is not None:
    count = int(state)
    say(f"restored {count}")
app.run()
