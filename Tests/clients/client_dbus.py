"""dbus-python (python3-dbus, with python3-gi for its main loop)."""
import os

import dbus
import dbus.bus
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

from greenroom import *

bus = dbus.bus.BusConnection(os.environ['DBUS_SYSTEM_BUS_ADDRESS'], mainloop=DBusGMainLoop())
manager = bus.get_object(NAME, PATH)
show('version', manager.Version(dbus_interface=MANAGER))
objects = manager.GetManagedObjects(dbus_interface=OBJECT_MANAGER)
show_apps(interfaces[APP] for interfaces in objects.values() if APP in interfaces)

loop = GLib.MainLoop()
events = []


def received(event):
    if is_active(event):
        events.append(event)
        loop.quit()


bus.add_signal_receiver(received, SIGNAL, MANAGER, NAME, PATH)
options = dbus.Dictionary({}, signature='sv')
result = manager.Launch('photos', options, dbus_interface=MANAGER, timeout=TIMEOUT)
show('launch', result['outcome'], result['state'])
GLib.timeout_add_seconds(TIMEOUT, loop.quit)
if not events:
    loop.run()
show_event(events[0])
try:
    manager.Status('missing', dbus_interface=MANAGER)
except dbus.DBusException as error:
    show('error', error.get_dbus_name())
