"""Programs that run in the session of the test (run), in place of those of a desktop."""

# A player that takes part in MPRIS and plays by other means than PipeWire, until the file `stop` exists.
PLAYER = r'''import os, sys
from gi.repository import Gio, GLib
node = Gio.DBusNodeInfo.new_for_xml("""<node><interface name="org.mpris.MediaPlayer2.Player">
<property name="PlaybackStatus" type="s" access="read"/></interface></node>""")
status, path = "Playing", "/org/mpris/MediaPlayer2"
bus = Gio.bus_get_sync(Gio.BusType.SESSION)
bus.register_object(path, node.interfaces[0], None, lambda *_: GLib.Variant("s", status), None)
Gio.bus_own_name_on_connection(bus, "org.mpris.MediaPlayer2.test", Gio.BusNameOwnerFlags.NONE)
def look():
    global status
    if not os.path.exists(sys.argv[1]):
        return True
    status = "Paused"
    changed = GLib.Variant("(sa{sv}as)", (node.interfaces[0].name, {"PlaybackStatus": GLib.Variant("s", status)}, []))
    bus.emit_signal(None, path, "org.freedesktop.DBus.Properties", "PropertiesChanged", changed)
GLib.timeout_add(100, look)
GLib.MainLoop().run()
'''

# A portal with one setting, the content of a file, that announces when it changes.
PORTAL = r'''import sys
from gi.repository import Gio, GLib
node = Gio.DBusNodeInfo.new_for_xml("""<node><interface name="org.freedesktop.portal.Settings"><method name="ReadAll">
<arg type="as" direction="in"/><arg type="a{sa{sv}}" direction="out"/></method><signal name="SettingChanged"><arg type="s"/>
<arg type="s"/><arg type="v"/></signal></interface></node>""")
path, interface, known = "/org/freedesktop/portal/desktop", node.interfaces[0].name, ""
bus = Gio.bus_get_sync(Gio.BusType.SESSION)
def scheme():
    return GLib.Variant("s", open(sys.argv[1]).read())
def called(connection, sender, path, interface, method, arguments, invocation):
    print("The settings are read.", flush=True)
    other = {"a": GLib.Variant("u", 7), "b": GLib.Variant("(dd)", (0.5, 1.5))}
    invocation.return_value(GLib.Variant("(a{sa{sv}})", ({"org.freedesktop.appearance": {"color-scheme": scheme()}, "x": other},)))
bus.register_object(path, node.interfaces[0], called, None, None)
Gio.bus_own_name_on_connection(bus, "org.freedesktop.portal.Desktop", Gio.BusNameOwnerFlags.NONE)
def look():
    global known
    if scheme().get_string() != known:
        known = scheme().get_string()
        changed = GLib.Variant("(ssv)", ("org.freedesktop.appearance", "color-scheme", scheme()))
        bus.emit_signal(None, path, interface, "SettingChanged", changed)
    return True
GLib.timeout_add(100, look)
GLib.MainLoop().run()
'''

# A program that shows notifications, with numbers of its own.
NOTIFIER = r'''from gi.repository import Gio, GLib
node = Gio.DBusNodeInfo.new_for_xml("""<node><interface name="org.freedesktop.Notifications"><method name="Notify">
<arg type="s" direction="in"/><arg type="u" direction="in"/><arg type="s" direction="in"/><arg type="s" direction="in"/>
<arg type="s" direction="in"/><arg type="as" direction="in"/><arg type="a{sv}" direction="in"/><arg type="i" direction="in"/>
<arg type="u" direction="out"/></method><method name="CloseNotification"><arg type="u" direction="in"/></method>
<signal name="NotificationClosed"><arg type="u"/><arg type="u"/></signal></interface></node>""")
path, interface, last = "/org/freedesktop/Notifications", node.interfaces[0].name, 0
bus = Gio.bus_get_sync(Gio.BusType.SESSION)
def called(connection, sender, path, interface, method, arguments, invocation):
    global last
    if method == "Notify":
        last = arguments[1] or last + 1
        return invocation.return_value(GLib.Variant("(u)", (last,)))
    bus.emit_signal(None, path, interface, "NotificationClosed", GLib.Variant("(uu)", (arguments[0], 3)))
    invocation.return_value(None)
bus.register_object(path, node.interfaces[0], called, None, None)
Gio.bus_own_name_on_connection(bus, interface, Gio.BusNameOwnerFlags.NONE)
GLib.MainLoop().run()
'''


# Online accounts: the names in a file, one a line, each followed by whether its mail is disabled. It announces each change ten times.
ACCOUNTS = r'''import sys
from gi.repository import Gio, GLib
node = Gio.DBusNodeInfo.new_for_xml("""<node><interface name="org.freedesktop.DBus.ObjectManager"><method name="GetManagedObjects">
<arg type="a{oa{sa{sv}}}" direction="out"/></method><signal name="InterfacesAdded"><arg type="o"/><arg type="a{sa{sv}}"/></signal>
<signal name="InterfacesRemoved"><arg type="o"/><arg type="as"/></signal></interface></node>""")
path, account, known = "/org/gnome/OnlineAccounts", "org.gnome.OnlineAccounts.Account", None
bus = Gio.bus_get_sync(Gio.BusType.SESSION)
def accounts():
    lines = [line.split() for line in open(sys.argv[1])]
    return {f"{path}/Accounts/{name}": {account: {"Id": GLib.Variant("s", name), "MailDisabled": GLib.Variant("b", off == "yes")}}
            for name, off in lines}
def called(connection, sender, path, interface, method, arguments, invocation):
    print("The accounts are read.", flush=True)
    invocation.return_value(GLib.Variant("(a{oa{sa{sv}}})", (accounts(),)))
bus.register_object(path, node.interfaces[0], called, None, None)
Gio.bus_own_name_on_connection(bus, "org.gnome.OnlineAccounts", Gio.BusNameOwnerFlags.NONE)
def emit(of, interface, member, types, values):
    for _ in range(10):
        bus.emit_signal(None, of, interface, member, GLib.Variant(types, values))
def look():
    global known
    before, known = known, accounts()
    manager = node.interfaces[0].name
    if before is None:
        return True
    for one in known.keys() - before.keys():
        emit(path, manager, "InterfacesAdded", "(oa{sa{sv}})", (one, known[one]))
    for one in before.keys() - known.keys():
        emit(path, manager, "InterfacesRemoved", "(oas)", (one, [account]))
    for one in known.keys() & before.keys():
        if known[one][account]["MailDisabled"].get_boolean() != before[one][account]["MailDisabled"].get_boolean():
            emit(one, "org.freedesktop.DBus.Properties", "PropertiesChanged", "(sa{sv}as)", (account, known[one][account], []))
    return True
GLib.timeout_add(100, look)
GLib.MainLoop().run()
'''


# A GeoClue that locates the device at a number of meters north of the equator, in a file with the accuracy.
GEOCLUE = r'''import sys
from gi.repository import Gio, GLib
nodes = Gio.DBusNodeInfo.new_for_xml("""<node><interface name="org.freedesktop.GeoClue2.Manager"><method name="CreateClient">
<arg type="o" direction="out"/></method><method name="DeleteClient"><arg type="o" direction="in"/></method></interface>
<interface name="org.freedesktop.GeoClue2.Client"><method name="Start"/><property name="DesktopId" type="s" access="readwrite"/>
<property name="DistanceThreshold" type="u" access="readwrite"/><property name="RequestedAccuracyLevel" type="u" access="readwrite"/>
<signal name="LocationUpdated"><arg type="o"/><arg type="o"/></signal></interface><interface name="org.freedesktop.GeoClue2.Location">
<property name="Latitude" type="d" access="read"/><property name="Longitude" type="d" access="read"/>
<property name="Accuracy" type="d" access="read"/><property name="Description" type="s" access="read"/></interface></node>""").interfaces
name, clients, last = "org.freedesktop.GeoClue2", {}, 0
bus = Gio.bus_get_sync(Gio.BusType.SYSTEM)
def position():
    return tuple(map(int, open(sys.argv[1]).read().split()))
def called(connection, sender, path, interface, method, arguments, invocation):
    global last
    if method == "CreateClient":
        last += 1
        path = f"/org/freedesktop/GeoClue2/Client/{last}"
        clients[path] = {"sender": sender, "position": None, "isStarted": False}
        clients[path]["object"] = bus.register_object(path, nodes[1], called, get, set)
        return invocation.return_value(GLib.Variant("(o)", (path,)))
    client = clients[arguments[0] if method == "DeleteClient" else path]
    if client["sender"] != sender:
        return invocation.return_dbus_error("org.freedesktop.DBus.Error.AccessDenied", "not yours")
    if method == "DeleteClient":
        print("Deleted:", client["DesktopId"], flush=True)
        bus.unregister_object(clients.pop(arguments[0])["object"])
        return invocation.return_value(None)
    print("Started:", *(client[key] for key in ("DesktopId", "DistanceThreshold", "RequestedAccuracyLevel")), flush=True)
    if "Refused" in client["DesktopId"]:
        return invocation.return_dbus_error("org.freedesktop.DBus.Error.AccessDenied", "refused")
    client["isStarted"] = True
    invocation.return_value(None)
def get(connection, sender, path, interface, key):
    return None
def set(connection, sender, path, interface, key, value):
    clients[path][key] = value.unpack()
    return True
bus.register_object("/org/freedesktop/GeoClue2/Manager", nodes[0], called, None, None)
Gio.bus_own_name_on_connection(bus, name, Gio.BusNameOwnerFlags.NONE)
def look():
    for path, client in clients.items():
        here = position()
        if client["isStarted"] and here != client["position"]:
            client["position"] = here
            client["count"] = client.get("count", 0) + 1
            location = f"{path}/Location/{client['count']}"
            values = {"Latitude": GLib.Variant("d", here[0] / 111195), "Longitude": GLib.Variant("d", 0),
                      "Accuracy": GLib.Variant("d", here[1]), "Description": GLib.Variant("s", "")}
            bus.register_object(location, nodes[2], None, lambda *arguments, values=values: values[arguments[4]], None)
            print("Located:", client["DesktopId"], *here, flush=True)
            bus.emit_signal(client["sender"], path, nodes[1].name, "LocationUpdated", GLib.Variant("(oo)", ("/", location)))
    return True
GLib.timeout_add(100, look)
GLib.MainLoop().run()
'''


# A distributor of UnifiedPush, of the version that its second argument names. It keeps registrations in a file, prints the calls that it gets, and
# makes those that are written to its standard input: a line with a token, a member, and bytes in hexadecimal or an endpoint.
DISTRIBUTOR = r'''import json, os, sys
from gi.repository import Gio, GLib
file, version, name = sys.argv[1], sys.argv[2], "org.unifiedpush.Distributor." + sys.argv[3]
text = "a{sv}" if version == "2" else "s"
node = Gio.DBusNodeInfo.new_for_xml(("""<node><interface name="org.unifiedpush.Distributor2"><method name="Register">
<arg type="a{sv}" direction="in"/><arg type="a{sv}" direction="out"/></method><method name="Unregister">
<arg type="a{sv}" direction="in"/><arg type="a{sv}" direction="out"/></method></interface></node>""" if version == "2" else
"""<node><interface name="org.unifiedpush.Distributor1"><method name="Register"><arg type="s" direction="in"/>
<arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="s" direction="out"/><arg type="s" direction="out"/></method>
<method name="Unregister"><arg type="s" direction="in"/></method></interface></node>"""))
bus = Gio.bus_get_sync(Gio.BusType.SESSION)
clients = json.load(open(file)) if os.path.exists(file) else {}
def keep():
    with open(file + ".new", "w") as new:
        json.dump(clients, new)
    os.rename(file + ".new", file)
def say(*words):
    print("Distributor:", *words, flush=True)
def call(member, token, value=None, key="endpoint"):
    if version == "2":
        values = {"token": GLib.Variant("s", token)}
        if value is not None:
            values[key] = value
        values["id"] = GLib.Variant("s", "m1")
        arguments = GLib.Variant("(a{sv})", (values,))
    else:
        last = [GLib.Variant("s", "m1")] if member == "Message" else []
        arguments = GLib.Variant.new_tuple(*[GLib.Variant("s", token)] + ([value] if value is not None else []) + last)
    def answered(source, result):
        try:
            say(member, "answered", source.call_finish(result).print_(False))
        except GLib.Error as error:
            say(member, "refused:", error.message.split(": ", 1)[-1])
    bus.call(clients[token] if token in clients else "org.greenroom.Session", "/org/unifiedpush/Connector",
             "org.unifiedpush.Connector" + version, member, arguments, None, Gio.DBusCallFlags.NONE, -1, None, answered)
def called(connection, sender, path, interface, method, arguments, invocation):
    values = arguments.unpack()
    values = values[0] if version == "2" else dict(zip(("service", "token", "description") if len(values) == 3 else ("token",), values))
    say(method, values.get("description", ""), values["token"])
    if method == "Unregister":
        clients.pop(values["token"], None)
        keep()
        call("Unregistered", values["token"] if version == "2" else "")
        return invocation.return_value(GLib.Variant("(a{sv})", ({},)) if version == "2" else None)
    reason = open(file + ".refuse").read() if os.path.exists(file + ".refuse") else ""
    if not reason:
        clients[values["token"]] = values["service"]
        keep()
        call("NewEndpoint", values["token"], GLib.Variant("s", "https://push.example/" + values["token"]))
    result = "REGISTRATION_FAILED" if reason else "REGISTRATION_SUCCEEDED"
    if reason != "hang":
        invocation.return_value(GLib.Variant("(a{sv})", ({"success": GLib.Variant("s", result), "reason": GLib.Variant("s", reason)},))
                                if version == "2" else GLib.Variant("(ss)", (result, reason)))
rest = b""
def read(channel, condition):
    global rest
    *lines, rest = (rest + os.read(0, 65536)).split(b"\n")
    for one in lines:
        token, member, value = (one.decode().split(" ") + ["", ""])[:3]
        if member == "Message":
            call(member, token, GLib.Variant("ay", bytes.fromhex(value)), "message")
        elif member:
            call(member, token, GLib.Variant("s", value) if value else None)
    return True
bus.register_object("/org/unifiedpush/Distributor", node.interfaces[0], called, None, None)
Gio.bus_own_name_on_connection(bus, name, Gio.BusNameOwnerFlags.NONE)
GLib.io_add_watch(0, GLib.IO_IN, read)
GLib.MainLoop().run()
'''
