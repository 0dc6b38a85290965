"""dbus-next and dbus-fast (python3-dbus-next, python3-dbus-fast), which have the same interface. Argument: the module."""
import asyncio
import importlib
import sys

from greenroom import *

library = importlib.import_module(sys.argv[1])
library_aio = importlib.import_module(sys.argv[1] + '.aio')


def unpacked(record):
    return {key: variant.value for key, variant in record.items()}


async def main():
    bus = await library_aio.MessageBus(bus_type=library.BusType.SYSTEM).connect()
    proxy = bus.get_proxy_object(NAME, PATH, await bus.introspect(NAME, PATH))
    manager = proxy.get_interface(MANAGER)
    show('version', await manager.call_version())
    objects = await proxy.get_interface(OBJECT_MANAGER).call_get_managed_objects()
    show_apps(unpacked(interfaces[APP]) for interfaces in objects.values() if APP in interfaces)

    last = asyncio.get_running_loop().create_future()

    def received(event):
        if is_active(unpacked(event)) and not last.done():
            last.set_result(unpacked(event))

    manager.on_lifecycle_event(received)
    result = unpacked(await manager.call_launch('photos', {}))
    show('launch', result['outcome'], result['state'])
    show_event(await asyncio.wait_for(last, TIMEOUT))
    try:
        await manager.call_status('missing')
    except library.DBusError as error:
        show('error', error.type)


asyncio.run(main())
