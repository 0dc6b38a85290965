"""Programs of D-Bus and X, and tools that read standard input, of the freeze map (programs.py)."""

import os

import talks
from programs import PYTHON, Start, echo_line, program, programs
from talks import is_large, text


# ---- D-Bus and X


def bus_configuration(site):
    return site.write("bus.conf", f"""<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={site.folder}/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy>
</busconfig>
""")


def bus_command(site):
    return ["/usr/bin/dbus-daemon", "--nofork", "--nopidfile", f"--config-file={bus_configuration(site)}"]


def bus_call(site, *words):
    return ["/usr/bin/busctl", f"--address=unix:path={site.folder}/bus", "call", *words]


@program("dbus-daemon", "dbus-daemon", "/usr/bin/dbus-daemon", "/usr/bin/busctl")
def dbus_daemon(site):
    name = "org.freedesktop.DBus"

    def commands(number):
        return [bus_call(site, name, "/org/freedesktop/DBus", name, "NameHasOwner", "s", f"a.b{number}")], b"b false\n"

    return Start(bus_command(site), talks.CommandTalk(commands))


@program("D-Bus service (python3-dbus)", "python3-dbus", PYTHON, "/usr/bin/dbus-daemon",
         "/usr/lib/python3/dist-packages/dbus/__init__.py", "/usr/lib/python3/dist-packages/gi/__init__.py")
def dbus_service(site):
    path = site.write("service.py", f"""
import dbus, dbus.bus, dbus.service
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

class Echo(dbus.service.Object):
    @dbus.service.method("test.Freeze", in_signature="s", out_signature="s")
    def Echo(self, text):
        return text

DBusGMainLoop(set_as_default=True)
bus = dbus.bus.BusConnection("unix:path={site.folder}/bus")
name = dbus.service.BusName("test.Freeze", bus)
Echo(bus, "/")
GLib.MainLoop().run()
""")
    site.help(*bus_command(site))
    site.await_success("/usr/bin/busctl", f"--address=unix:path={site.folder}/bus", "list")

    def commands(number):
        word = text(number, 20_000 if is_large(number) else 100).decode()
        call = bus_call(site, "test.Freeze", "/", "test.Freeze", "Echo", "s", word)
        return [call], f's "{word}"\n'.encode()

    return Start([PYTHON, path], talks.CommandTalk(commands), listens=False)


def free_display():
    for number in range(90 + os.getpid() % 100 * 10, 2000):
        if not os.path.exists(f"/tmp/.X11-unix/X{number}") and not os.path.exists(f"/tmp/.X{number}-lock"):
            return f":{number}"
    raise RuntimeError("there is no free display")


def server_command(display):
    return ["/usr/bin/Xvfb", display, "-nolisten", "tcp", "-noreset", "-screen", "0", "640x480x24"]


@program("Xvfb", "xvfb", "/usr/bin/Xvfb", "/usr/bin/xprop")
def xvfb(site):
    display = free_display()

    def commands(number):
        word = text(number, 4096 if is_large(number) else 64).decode()
        read = ["/usr/bin/xprop", "-display", display, "-root", "-notype", "GREENROOM"]
        return [talks.set_property(display, word), read], f'GREENROOM = "{word}"\n'.encode()

    return Start(server_command(display), talks.CommandTalk(commands))


@program("xprop -spy (an X client)", "x11-utils", "/usr/bin/Xvfb", "/usr/bin/xprop")
def x_client(site):
    # Another display than that of the program before, which may not have started yet.
    display = f":{int(free_display()[1:]) + 5}"
    site.help(*server_command(display))
    # An app that waits for the server itself would be suspended between two attempts: no input tells that the server runs.
    # And xprop never prints a property whose name the server does not know when it starts.
    site.await_success(*talks.set_property(display, "start"))
    return Start(["/usr/bin/xprop", "-display", display, "-root", "-notype", "-spy", "GREENROOM"],
                 talks.SpyTalk(site.folder, display), listens=False, is_stdio=True)


# ---- Tools that read standard input


def tool(name, package, command, encode):
    def start(site):
        return Start(command, talks.StandardTalk(site.folder, encode), listens=False, is_stdio=True)
    programs.append((name, package, (command[0],), start))


def calculate(number):
    return b"%d * 123456789\n" % number, b"%d\n" % (number * 123456789)


def select(number):
    return b"select upper('%s');\n" % text(number, 64), text(number, 64).upper() + b"\n"


def evaluate(number):
    return b"print('%s'.upper())\n" % text(number, 64), text(number, 64).upper() + b"\n"


def document(number):
    line = b'{"number":%d,"text":"%s"}\n' % (number, text(number, 64))
    return line, line


def upper(number):
    line = echo_line(number)[0]
    return line, line.upper()


tool("cat", "coreutils", ["/bin/cat"], echo_line)
tool("bc", "bc", ["/usr/bin/bc", "-q"], calculate)
tool("sqlite3", "sqlite3", ["/usr/bin/sqlite3", "-batch", ":memory:"], select)
tool("python3 -i", "python3", [PYTHON, "-u", "-i", "-q"], evaluate)
tool("jq --unbuffered", "jq", ["/usr/bin/jq", "--unbuffered", "-c", "."], document)
tool("gawk", "gawk", ["/usr/bin/gawk", "{ print toupper($0); fflush() }"], upper)
tool("mawk -W interactive", "mawk", ["/usr/bin/mawk", "-W", "interactive", "{ print toupper($0) }"], upper)
tool("sed -u", "sed", ["/bin/sed", "-u", "y/abcdef/ABCDEF/"], upper)
tool("grep --line-buffered", "grep", ["/bin/grep", "--line-buffered", "."], echo_line)
