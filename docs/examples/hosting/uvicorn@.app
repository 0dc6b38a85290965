# An ASGI application per tenant in uvicorn.
#
# Needs: the package uvicorn. /srv/www/NAME/app.py defines the application `app`.
# Does: --fd 3 is the socket of greenroomd: the first ListenStream= has the descriptor 3.
# Change: User=. With --lifespan on, the application is notified of its start and end.
[App]
Name=Application %i
ExecStart=/usr/bin/uvicorn --fd 3 --lifespan auto app:app
Type=listening
Role=worker
User=www-data
WorkingDirectory=/srv/www/%i

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
