#!/usr/bin/python3
"""sway.py [RUNTIME]: shows in sway the windows of the apps that are in front, and activates the app whose window the user focuses.

Each app has a workspace, app:ID, and each of its further scenes one, app:ID/SCENE. RUNTIME is the runtime folder of greenroomd.
Needs python3-gi, and grim for snapshots. When it ends, the workspaces stay as they are, and sway's own commands switch them.
"""
import fcntl
import json
import os
import re
import socket
import struct
import subprocess
import sys

from gi.repository import Gio, GLib

ROOT, APP, MANAGER, OBJECTS = "/org/greenroom", "org.greenroom.App1", "org.greenroom.Manager1", "org.freedesktop.DBus.ObjectManager"
MAIN = "main"


class Sway:
    """The IPC of sway (sway-ipc(7)): a connection for commands, and one for events."""

    COMMAND, SUBSCRIBE, TREE, TICK = 0, 2, 4, 10
    WINDOW, TICKED = 0x80000003, 0x80000007

    def __init__(self, handle):
        self.handle = handle
        self.commands, self.events = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        for connection in self.commands, self.events:
            connection.connect(os.environ["SWAYSOCK"])
        self.ask(self.SUBSCRIBE, '["window", "tick", "output"]', self.events)
        GLib.io_add_watch(self.events.fileno(), GLib.PRIORITY_DEFAULT, GLib.IO_IN | GLib.IO_HUP, self.readable)

    def ask(self, kind, text="", connection=None):
        connection, data = connection or self.commands, text.encode()
        connection.sendall(b"i3-ipc" + struct.pack("=II", len(data), kind) + data)
        return self.read(connection)[1]

    def read(self, connection):
        head = connection.recv(14, socket.MSG_WAITALL) or os._exit(0)  # sway has ended, and its session with it.
        length, kind = struct.unpack("=II", head[6:])
        return kind, json.loads(connection.recv(length, socket.MSG_WAITALL))

    def readable(self, *_):
        self.handle(*self.read(self.events))
        return True

    def run(self, commands):
        for command, result in zip(commands, self.ask(self.COMMAND, "; ".join(commands))):
            if not result["success"]:
                print(f"sway.py: {command}: {result.get('error')}", file=sys.stderr)


class Screen:
    """What sway shows: the windows, and the workspace on each output."""

    def __init__(self, tree):
        self.windows, self.shown, self.outputs = [], {}, {}
        self.focus, self.depth = ("", 0, "", ""), 0
        for output in tree["nodes"]:
            if output["name"] != "__i3":
                self.shown[output["name"]] = output.get("current_workspace")
                for workspace in output["nodes"]:
                    self.outputs[workspace["name"]] = output["name"]
                    self.collect(workspace, workspace["name"], output["name"], 0)

    def collect(self, node, workspace, output, depth):
        if node["focused"]:
            self.focus, self.depth = (node["type"], node["id"], workspace, output), depth
        if node.get("pid"):
            name = node.get("app_id") or node.get("window_properties", {}).get("class") or ""
            self.windows.append(dict(id=node["id"], pid=node["pid"], name=name, workspace=workspace))
        for child in node["nodes"] + node["floating_nodes"]:
            self.collect(child, workspace, output, depth + 1)


class Greenroom:
    """The private socket of greenroomd, and the properties of its apps. When the daemon is replaced, it connects again."""

    def __init__(self, path, changed):
        self.path, self.changed, self.apps, self.reasons = path, changed, {}, {}
        self.connect()

    def connect(self):
        try:
            self.bus = Gio.DBusConnection.new_for_address_sync(
                "unix:path=" + self.path, Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT, None, None)
            for interface, member in (None, "PropertiesChanged"), (OBJECTS, None), (MANAGER, "LifecycleEvent"):
                self.bus.signal_subscribe(None, interface, member, None, None, Gio.DBusSignalFlags.NONE, self.received)
            [found] = self.call(ROOT, OBJECTS, "GetManagedObjects")
            self.apps = {path: all[APP] for path, all in found.items()}
        except GLib.Error:
            GLib.timeout_add(200, self.connect)
            return
        self.bus.connect("closed", lambda *_: self.connect())
        self.changed()

    def received(self, _bus, _sender, path, _interface, member, arguments):
        values = arguments.unpack()
        if member == "LifecycleEvent":
            if values[0]["kind"] == "stateChanged":
                self.reasons[values[0]["app"]] = values[0].get("reason")
            return
        if member == "PropertiesChanged" and path in self.apps and values[0] == APP:
            self.apps[path].update(values[1])
        elif member == "InterfacesAdded":
            self.apps[values[0]] = values[1][APP]
        elif member == "InterfacesRemoved":
            self.apps.pop(values[0], None)
        self.changed()

    def call(self, path, interface, member, arguments=None, descriptors=None):
        answer, self.descriptors = self.bus.call_with_unix_fd_list_sync(
            None, path, interface, member, arguments, None, Gio.DBusCallFlags.NONE, 5000, descriptors, None)
        return answer.unpack()

    def app_of(self, window):
        """The app of the window's process. A process of no app may show the windows of one that names them in WindowAppID=."""
        try:
            [found] = self.call(ROOT, MANAGER, "GetAppByPID", GLib.Variant("(u)", (window["pid"],)))
            return next((path for path, app in self.apps.items() if app["Id"] == found), None)
        except GLib.Error as error:
            if Gio.DBusError.get_remote_error(error) != "org.greenroom.Error.UnknownApp":
                return None
            return next((path for path, app in self.apps.items() if app["WindowAppID"] == window["name"]), None)

    def activate(self, path, scene, refused):
        """Asks for the foreground. The answer comes when the app is there, or is not going to be."""
        def answered(bus, result):
            try:
                bus.call_finish(result)
            except GLib.Error as error:
                print(f"sway.py: {error.message}", file=sys.stderr)
                refused()
        method, arguments = ("ActivateScene", GLib.Variant("(s)", (scene,))) if self.apps[path]["Scenes"] else ("Activate", None)
        self.bus.call(None, path, APP, method, arguments, None, Gio.DBusCallFlags.NONE, GLib.MAXINT, None, answered)

    def set_snapshot(self, path, contents, scene=None):
        file = os.memfd_create("snapshot", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(file, contents)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
        method, arguments = ("SetSceneSnapshot", GLib.Variant("(ssh)", (scene, "image/png", 0))) if scene else (
            "SetSnapshot", GLib.Variant("(sh)", ("image/png", 0)))
        try:
            # The list closes the descriptor.
            self.call(path, APP, method, arguments, Gio.UnixFDList.new_from_array([file]))
        except GLib.Error as error:
            # Otherwise the app takes its snapshots itself, or its manifest hides them.
            if "InvalidArgument" in error.message:
                print(f"sway.py: {error.message}", file=sys.stderr)

    def snapshot(self, path):
        """What the app showed last, if that is a picture."""
        try:
            _, kind, _ = self.call(path, APP, "GetSnapshot")
            with os.fdopen(self.descriptors.get(0), "rb") as file:
                return file.read() if kind == "image/png" else None
        except GLib.Error:
            return None


class Provider:
    def __init__(self, runtime):
        self.owners, self.rules, self.recent, self.ticks, self.is_scheduled = {}, set(), [], 0, False
        # Outputs whose background is a snapshot, which is not to be seen behind other apps.
        self.pictured = set()
        self.sway = Sway(self.handle)
        self.greenroom = Greenroom(runtime + "/bus", self.schedule)

    def schedule(self):
        if not self.is_scheduled:
            self.is_scheduled = True
            GLib.idle_add(self.arrange)

    def handle(self, kind, event):
        """What the commands of this program have focused comes before their tick, all other focus is the user's."""
        if kind == Sway.TICKED:
            self.ticks -= event["payload"] == "greenroom"
        elif kind != Sway.WINDOW or event["change"] in ("new", "close", "move"):
            self.schedule()
        elif event["change"] == "focus" and self.ticks == 0:
            screen = Screen(self.sway.ask(Sway.TREE))
            face = next((self.face(window) for window in screen.windows if window["id"] == event["container"]["id"]), None)
            if face and face not in self.wanted():
                self.greenroom.activate(*face, self.schedule)

    # Faces: the windows of an app, or of one of its scenes

    def face(self, window):
        """The app and the scene. A window of a scene has the app ID of the app, a dot, and the scene as its app ID."""
        owner = self.owners.get(window["id"]) or self.greenroom.app_of(window)
        app = self.greenroom.apps.get(owner)
        if app is None:
            return None
        self.owners[window["id"]] = owner
        scene = window["name"].removeprefix(app["WindowAppID"] + ".")
        return owner, scene if any(scene == known["id"] for known in app["Scenes"]) else MAIN

    def workspace(self, face):
        name = "app:" + self.greenroom.apps[face[0]]["Id"]
        return name if face[1] == MAIN else f"{name}/{face[1]}"

    def wanted(self):
        """The faces to be shown, the newest last. With the scene None the app is being launched: its snapshot stands in."""
        now = []
        for path, app in self.greenroom.apps.items():
            if app["Visible"] and app["Scenes"]:
                now += [(path, scene["id"]) for scene in app["Scenes"] if scene["state"].startswith("foreground")]
            elif app["Visible"] or app["LaunchState"] == "inactive":
                now.append((path, MAIN if app["Visible"] else None))
        self.recent = [face for face in self.recent if face in now] + [face for face in now if face not in self.recent]
        return self.recent

    def arrange(self):
        """Brings sway to what Greenroom says: at any time, with what differs."""
        self.is_scheduled = False
        screen = Screen(self.sway.ask(Sway.TREE))
        faces = {window["id"]: self.face(window) for window in screen.windows}
        self.owners = {window: owner for window, owner in self.owners.items() if window in faces}
        commands, goals = self.new_rules(), self.goals(screen)
        for window in screen.windows:
            face = faces[window["id"]]
            if face and window["workspace"] != self.workspace(face):
                commands.append(f'[con_id={window["id"]}] move container to workspace "{self.workspace(face)}"')
        changed = {output: face for output, face in goals.items() if screen.shown[output] != self.goal(output, face)}
        for output, face in changed.items():
            name, is_launched = self.goal(output, face), face and not face[1]
            self.take_snapshot(output, {faces[w["id"]] for w in screen.windows if w["workspace"] == screen.shown[output]})
            background = [f"output {output} bg {self.stand_in(output, face)}"] if is_launched else []
            show = [f"focus output {output}", f'workspace "{name}"']
            if screen.outputs.get(name, output) != output:
                show.append(f"move workspace to output {output}")
            commands += background + show
            if not is_launched and output in self.pictured:
                commands.append(f"output {output} bg #000000 solid_color")
            (self.pictured.add if is_launched else self.pictured.discard)(output)
        commands += [] if changed else self.input(screen, faces)
        if commands:
            self.ticks += 1
            self.sway.run(commands)
            self.sway.ask(Sway.TICK, "greenroom")
        if changed:
            self.schedule()

    def goal(self, output, face):
        """The workspace of what an output shows. Nothing, and what stands in for an app, is an empty one."""
        return self.workspace(face) if face and face[1] else f"app:{output}"

    def goals(self, screen):
        """What each output is to show: a face, or None, if it has shown one that is gone. The newest faces are shown."""
        goals, others = {}, []
        for face in reversed(self.wanted()[-len(screen.shown):]):
            output = next((output for output, shown in screen.shown.items() if shown == self.goal(output, face)), None)
            if output and output not in goals:
                goals[output] = face
            else:
                others.append(face)
        free = sorted((output for output in screen.shown if output not in goals), key=lambda output: output != screen.focus[3])
        goals.update(zip(free, others))
        goals.update((output, None) for output in free[len(others):] if (screen.shown[output] or "").startswith("app:"))
        return goals

    def new_rules(self):
        """sway moves the windows of an app to its workspace before they are shown: by their app ID, or by the main process."""
        rules = []
        for app in self.greenroom.apps.values():
            name = re.escape(app["WindowAppID"]).replace('"', '\\"')
            rules += [f'assign [{kind}="^{name}(\\..*)?$"] workspace "app:{app["Id"]}"' for kind in ("app_id", "class")]
            if app["Pid"]:
                rules.append(f'for_window [pid={app["Pid"]}] move container to workspace "app:{app["Id"]}"')
        before, self.rules = self.rules, set(rules)
        return [rule for rule in rules if rule not in before]

    def stand_in(self, output, face):
        contents = self.greenroom.snapshot(face[0])
        if contents is None:
            return "#000000 solid_color"
        path = f'{os.environ["XDG_RUNTIME_DIR"]}/greenroom-{output}.png'
        with open(path, "wb") as file:
            file.write(contents)
        return f'"{path}" fill'

    def take_snapshot(self, output, faces):
        """Of the app that an output shows, and of the scene, before it is hidden. A locked screen does not show it."""
        faces = {face for face in faces if face}
        path = min(faces)[0] if len({path for path, _ in faces}) == 1 else None
        app = self.greenroom.apps.get(path)
        if app and app["Pid"] and self.greenroom.reasons.get(app["Id"]) not in ("locked", "sleep"):
            try:
                picture = subprocess.run(["grim", "-o", output, "-"], stdout=subprocess.PIPE, timeout=10, check=True).stdout
            except (OSError, subprocess.SubprocessError) as error:
                print(f"sway.py: {error}", file=sys.stderr)
                return
            scenes = [scene for _, scene in faces if len(faces) == 1 and any(scene == known["id"] for known in app["Scenes"])]
            for scene in [None] + scenes:
                self.greenroom.set_snapshot(path, picture, scene)

    def input(self, screen, faces):
        """An inactive app gets no keys: its workspace has the focus instead of its window."""
        kind, number, name, _ = screen.focus
        here = [window["id"] for window in screen.windows if window["workspace"] == name]
        windows = [window for window in here if faces[window]]
        # What covers the app, an alert, has the focus.
        covers = [window for window in here if not faces[window]]
        if not windows or number in covers:
            return []
        if covers or self.greenroom.apps[faces[windows[0]][0]]["ReceivesInput"]:
            return [f"[con_id={(covers or windows)[-1]}] focus"] if kind == "workspace" else []
        return ["focus parent"] * screen.depth


if __name__ == "__main__":
    provider = Provider(sys.argv[1] if len(sys.argv) > 1 else os.environ["XDG_RUNTIME_DIR"] + "/greenroom")
    GLib.MainLoop().run()
