"""What the client programs of this folder share.

Each program is a client of greenroomd with one D-Bus library. It connects to the bus at DBUS_SYSTEM_BUS_ADDRESS: a message bus
with greenroomd, or greenroomd's private socket. All of them print the same lines; ClientTests.swift compares these.
"""

NAME = 'org.greenroom'
PATH = '/org/greenroom'
MANAGER = 'org.greenroom.Manager1'
APP = 'org.greenroom.App1'
OBJECT_MANAGER = 'org.freedesktop.DBus.ObjectManager'
SIGNAL = 'LifecycleEvent'
# Seconds; for slow machines.
TIMEOUT = 60


def show(key, *values):
    print(f'{key}:', *values, flush=True)


def show_apps(apps):
    """Prints the apps of GetManagedObjects: a list of dictionaries with the properties of App1."""
    show('apps', *sorted(f"{app['Id']}={app['LoadState']}" for app in apps))


def is_active(event):
    """Whether a LifecycleEvent is the last one of the launch."""
    return event.get('kind') == 'stateChanged' and event.get('state') == 'active'


def show_event(event):
    show('event', event['app'], event['state'])
