"""dasbus (python3-dasbus)."""
from dasbus.connection import SystemMessageBus
from dasbus.error import DBusError
from dasbus.loop import EventLoop
from dasbus.typing import get_native
from gi.repository import GLib

from greenroom import *

bus = SystemMessageBus()
manager = bus.get_proxy(NAME, PATH, interface_name=MANAGER)
show('version', manager.Version())
objects = get_native(bus.get_proxy(NAME, PATH, interface_name=OBJECT_MANAGER).GetManagedObjects())
show_apps(interfaces[APP] for interfaces in objects.values() if APP in interfaces)

loop = EventLoop()
events = []


def received(event):
    if is_active(get_native(event)):
        events.append(get_native(event))
        loop.quit()


manager.LifecycleEvent.connect(received)
result = get_native(manager.Launch('photos', {}))
show('launch', result['outcome'], result['state'])
GLib.timeout_add_seconds(TIMEOUT, loop.quit)
if not events:
    loop.run()
show_event(events[0])
try:
    manager.Status('missing')
except DBusError as error:
    show('error', error.dbus_name)
