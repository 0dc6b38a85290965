# A PostgreSQL cluster, which is suspended while no client uses it.
#
# Needs: the package postgresql. `pg_createcluster --start-conf=manual 15 NAME` creates a cluster that Debian's own service does not
#   start.
# Does: PostgreSQL cannot take sockets of greenroomd, so it binds its own, and no connection launches it: `greenroomctl launch
#   postgresql@NAME` does. Input wakes it. While it is suspended nothing of it runs, also no autovacuum and no checkpoint: they
#   run when it is awake. Replication, and backups that stream its log, need IdleSec=infinity.
# Change: the version, the memory. UnloadAfterSec= would end it, and no connection would launch it again.
[App]
Name=PostgreSQL %i
ExecStart=/usr/lib/postgresql/15/bin/postgres -D /var/lib/postgresql/15/%i -c config_file=/etc/postgresql/15/%i/postgresql.conf
Type=notify
Role=worker
User=postgres
KillMode=mixed
Relaunch=always

[Lifecycle]
LaunchDeadlineSec=1min
TerminateDeadlineSec=1min
ExtendedDeadlineMaxSec=10min
IdleSec=10s

[Signals]
# Ends sessions and writes a checkpoint; SIGTERM waits until all clients have disconnected.
Terminate=SIGINT

[Memory]
JetsamPriority=500

[Wake]
Traffic=yes
