# A memcached, which is suspended while no client uses it.
#
# Needs: the package memcached. Switch off its own service: systemctl disable --now memcached.
# Does: memcached cannot take sockets of greenroomd, so it binds its port itself, and no connection launches it: it is launched at
#   the start. Input wakes it. It has no UnloadAfterSec=, because its contents would be lost, and it is killed for memory before
#   other apps, because a cache can be filled again (Relaunch=always launches it when there is space).
# Change: -m (MiB), the port.
[App]
Name=memcached
ExecStart=/usr/bin/memcached -l 127.0.0.1 -p 11211 -m 64
Type=listening
Role=worker
User=memcache
LaunchAtStart=background
Relaunch=always

[Lifecycle]
IdleSec=10s

[Memory]
JetsamPriority=-100

[Wake]
Traffic=yes
