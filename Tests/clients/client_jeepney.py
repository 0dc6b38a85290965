"""jeepney (python3-jeepney)."""
from jeepney import DBusAddress, HeaderFields, MatchRule, MessageType, new_method_call
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import open_dbus_connection

from greenroom import *

connection = open_dbus_connection(bus='SYSTEM')


def ask(interface, member, signature=None, arguments=()):
    message = new_method_call(DBusAddress(PATH, NAME, interface), member, signature, arguments)
    return connection.send_and_get_reply(message, timeout=TIMEOUT)


def unpacked(record):
    return {key: value for key, (_, value) in record.items()}


show('version', *ask(MANAGER, 'Version').body)
objects = ask(OBJECT_MANAGER, 'GetManagedObjects').body[0]
show_apps(unpacked(interfaces[APP]) for interfaces in objects.values() if APP in interfaces)

rule = MatchRule(type='signal', interface=MANAGER, member=SIGNAL, path=PATH)
connection.send_and_get_reply(message_bus.AddMatch(rule), timeout=TIMEOUT)
with connection.filter(rule, bufsize=100) as signals:
    result = unpacked(ask(MANAGER, 'Launch', 'sa{sv}', ('photos', {})).body[0])
    show('launch', result['outcome'], result['state'])
    event = {}
    while not is_active(event):
        event = unpacked(connection.recv_until_filtered(signals, timeout=TIMEOUT).body[0])
show_event(event)
answer = ask(MANAGER, 'Status', 's', ('missing',))
if answer.header.message_type == MessageType.error:
    show('error', answer.header.fields[HeaderFields.error_name])
