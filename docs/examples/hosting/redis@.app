# A Redis per tenant, which the first connection launches.
#
# Needs: the package redis-server. Switch off its own service: systemctl disable --now redis-server.
# Does: Redis cannot take sockets of greenroomd, so behind-proxyd puts systemd-socket-proxyd in front of it: clients use
#   /run/redis-NAME.sock. After an hour without a request Redis is woken, gets SIGTERM, saves its data and ends.
# Change: --save, --maxmemory. Save points pass while Redis is suspended; what it has to save, it saves when it is woken or ends.
[App]
Name=Redis %i
ExecStart=/usr/share/doc/greenroom/examples/hosting/behind-proxyd %t/redis-%i/internal.sock /usr/bin/redis-server --port 0 --unixsocket %t/redis-%i/internal.sock --dir %S/redis-%i --save "900 1" --maxmemory 64mb --supervised systemd
Type=notify
Role=worker
User=redis
RuntimeDirectory=redis-%i
StateDirectory=redis-%i

[Lifecycle]
TerminateDeadlineSec=1min
ExtendedDeadlineMaxSec=5min
IdleSec=10s
UnloadAfterSec=1h

[Memory]
MemoryMax=256M

[Wake]
ListenStream=/run/redis-%i.sock
SocketUser=redis
SocketMode=0660
