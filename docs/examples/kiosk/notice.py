#!/usr/bin/python3
"""notice.py APP TEXT [RUNTIME]: shows a notice of an app in the way that its manifest says (Notices=).

    banner   for 5s, beside the apps in front, which stay active
    alert    until the user dismisses it; meanwhile the apps in front are interrupted
    none     not at all: the exit status is 3

APP is the ID of the app, which need not run. RUNTIME is the runtime folder of greenroomd. Needs python3-gi. The notice is shown with
swaynag, which is a part of sway. Without it, or without a display, it is printed, and an alert ends with a line of input.
"""
import os
import shutil
import signal
import subprocess
import sys

from gi.repository import Gio, GLib

APP, MANAGER, OBJECTS = "org.greenroom.App1", "org.greenroom.Manager1", "org.freedesktop.DBus.ObjectManager"
SECONDS, NOT_SHOWN = 5, 3


def call(bus, interface, member, arguments=None):
    answer = bus.call_sync(None, "/org/greenroom", interface, member, arguments, None, Gio.DBusCallFlags.NONE, 5000, None)
    return answer.unpack()[0]


def interrupt(bus, apps):
    """The interruptions end with this connection, so at the latest with this program."""
    for app in apps:
        try:
            call(bus, MANAGER, "InterruptWhileConnected", GLib.Variant("(s)", (app["Id"],)))
        except GLib.Error as error:
            # It has left the foreground meanwhile.
            print(f"notice.py: {error.message}", file=sys.stderr)


def show(text, is_alert):
    if "WAYLAND_DISPLAY" not in os.environ or not shutil.which("swaynag"):
        print(text, flush=True)
        if is_alert:
            sys.stdin.readline()
        return
    try:
        # SIGTERM raises SystemExit here, and run() kills swaynag for that.
        subprocess.run(["swaynag", "--layer=overlay", f"--message={text}"], timeout=None if is_alert else SECONDS, check=True)
    except subprocess.TimeoutExpired:
        pass


def main(name, text, runtime):
    bus = Gio.DBusConnection.new_for_address_sync(
        f"unix:path={runtime}/bus", Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT, None, None)
    apps = [interfaces[APP] for interfaces in call(bus, OBJECTS, "GetManagedObjects").values() if APP in interfaces]
    sender = next((app for app in apps if app["Id"] == name), None)
    if sender is None:
        sys.exit(f"notice.py: no app has the ID '{name}'")
    style = sender["NoticeStyle"]
    if style == "none":
        return NOT_SHOWN
    if style == "alert":
        interrupt(bus, [app for app in apps if app["Visible"]])
    show(f"{sender['Name']}: {text}", style == "alert")
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: notice.py APP TEXT [RUNTIME]")
    sys.exit(main(*sys.argv[1:3], sys.argv[3] if len(sys.argv) > 3 else os.environ["XDG_RUNTIME_DIR"] + "/greenroom"))
