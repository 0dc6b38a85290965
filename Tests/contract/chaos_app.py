#!/usr/bin/python3
"""The app of ContractChaosTests: it writes a line to the file CHAOS_LOG for each event that it has handled."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Sources/Python"))
import greenroom  # noqa: E402

app = greenroom.App()
log = os.open(os.environ["CHAOS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
count = 0


def say(*words):
    os.write(log, (" ".join(words) + "\n").encode())


@app.on_active
def active(cause):
    say("active", cause)


@app.on_inactive
def inactive(cause):
    say("inactive", cause)


@app.on_foreground
def foreground():
    say("foreground")


@app.on_background
def background():
    global count
    count += 1
    with app.task("save"):
        app.save(count)
    say("background")


@app.on_push
def push(payload):
    with app.task("push"):
        say("push", payload)
    return greenroom.Result.NEW_DATA


@app.on_url
def url(url):
    say("url", url)


@app.on_terminate
def terminate(reason):
    say("terminate", reason)


say("launch")
app.run()
