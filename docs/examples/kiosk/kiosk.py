#!/usr/bin/python3
"""kiosk.py: a kiosk of the apps catalog and tickets, and of home. Each counts for how long it was in front, over all its processes.

home.app, catalog.app and tickets.app name the same program: GREENROOM_APP says which one it is.
"""
import greenroom

app = greenroom.App()
state = app.restore({"seconds": 0, "page": "start"})
in_front = False


@app.on_active
def active(cause):
    global in_front
    # After an interruption a game stays paused until the user continues it.
    in_front = cause != "interruptionEnded"


@app.on_inactive
def inactive():
    global in_front
    in_front = False


@app.on_background
def background():
    app.save(state)


@app.on_url
def open_page(url):
    state["page"] = url.partition(":")[2]


while app.dispatch(1.0):
    state["seconds"] += in_front
    app.status(f"{app.launch.app or 'kiosk'}: {state['page']}, {state['seconds']}s in front")
