# A Node.js server per tenant.
#
# Needs: the package nodejs. /srv/www/NAME/server.js calls `server.listen({ fd: 3 })`, as server.js beside this file does.
# Does: the first ListenStream= has the descriptor 3.
# Change: User=, --max-old-space-size= (in MiB).
[App]
Name=Server %i
ExecStart=/usr/bin/node --max-old-space-size=128 server.js
Type=listening
Role=worker
User=www-data
WorkingDirectory=/srv/www/%i
Environment=NODE_ENV=production

[Lifecycle]
LaunchDeadlineSec=30s
IdleSec=10s
UnloadAfterSec=1h

[Memory]
MemoryMax=512M

[Wake]
ListenStream=/run/sites/%i.sock
SocketUser=www-data
SocketMode=0660
