"""sdbus (PyPI: sdbus)."""
import asyncio

import sdbus

from greenroom import *


class Manager(sdbus.DbusInterfaceCommonAsync, interface_name=MANAGER):
    @sdbus.dbus_method_async(result_signature='s')
    async def version(self) -> str:
        raise NotImplementedError

    @sdbus.dbus_method_async(input_signature='sa{sv}', result_signature='a{sv}')
    async def launch(self, app, options) -> dict:
        raise NotImplementedError

    @sdbus.dbus_method_async(input_signature='s', result_signature='a{sv}')
    async def status(self, app) -> dict:
        raise NotImplementedError

    @sdbus.dbus_signal_async(signal_signature='a{sv}')
    def lifecycle_event(self) -> dict:
        raise NotImplementedError


def unpacked(record):
    return {key: value for key, (_, value) in record.items()}


async def wait_for_event(manager):
    async for event in manager.lifecycle_event:
        if is_active(unpacked(event)):
            return unpacked(event)


async def main():
    bus = sdbus.sd_bus_open_system()
    manager = Manager.new_proxy(NAME, PATH, bus)
    show('version', await manager.version())
    objects = await sdbus.DbusObjectManagerInterfaceAsync.new_proxy(NAME, PATH, bus).get_managed_objects()
    show_apps(unpacked(interfaces[APP]) for interfaces in objects.values() if APP in interfaces)
    waiting = asyncio.create_task(wait_for_event(manager))
    # The match is added before the next answer arrives.
    await manager.version()
    result = unpacked(await manager.launch('photos', {}))
    show('launch', result['outcome'], result['state'])
    show_event(await asyncio.wait_for(waiting, TIMEOUT))
    try:
        await manager.status('missing')
    except sdbus.SdBusUnmappedMessageError as error:
        show('error', error.args[0])


asyncio.run(main())
