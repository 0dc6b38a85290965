"""GDBus (python3-gi), with GDBusObjectManagerClient and messages with descriptors."""
import gi

gi.require_version('Gio', '2.0')
from gi.repository import Gio, GLib

from greenroom import *

# Not the shared connection of the process, which would end the program together with the bus.
address = Gio.dbus_address_get_for_bus_sync(Gio.BusType.SYSTEM, None)
flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION
connection = Gio.DBusConnection.new_for_address_sync(address, flags, None, None)


def call(member, arguments=None):
    return connection.call_sync(
        NAME, PATH, MANAGER, member, arguments, None, Gio.DBusCallFlags.NONE, TIMEOUT * 1000, None).unpack()


show('version', *call('Version'))
objects = Gio.DBusObjectManagerClient.new_sync(
    connection, Gio.DBusObjectManagerClientFlags.DO_NOT_AUTO_START, NAME, PATH, None, None, None)
proxies = [found.get_interface(APP) for found in objects.get_objects()]
show_apps({name: proxy.get_cached_property(name).unpack() for name in ('Id', 'LoadState')} for proxy in proxies)

loop = GLib.MainLoop()
events = []


def received(connection, sender, path, interface, member, arguments):
    event = arguments.unpack()[0]
    if is_active(event):
        events.append(event)
        loop.quit()


connection.signal_subscribe(NAME, MANAGER, SIGNAL, PATH, None, Gio.DBusSignalFlags.NONE, received)
result = call('Launch', GLib.Variant('(sa{sv})', ('photos', {})))[0]
show('launch', result['outcome'], result['state'])
GLib.timeout_add_seconds(TIMEOUT, loop.quit)
if not events:
    loop.run()
show_event(events[0])
try:
    call('Status', GLib.Variant('(s)', ('missing',)))
except GLib.Error as error:
    show('error', Gio.DBusError.get_remote_error(error))

descriptors = Gio.UnixFDList.new()
descriptors.append(0)
try:
    connection.call_with_unix_fd_list_sync(
        NAME, PATH, MANAGER, 'Version', None, None, Gio.DBusCallFlags.NONE, TIMEOUT * 1000, descriptors, None)
except GLib.Error as error:
    show('descriptors', Gio.DBusError.get_remote_error(error))
show('afterwards', *call('Version'))
