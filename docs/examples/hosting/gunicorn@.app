# A WSGI application per tenant in gunicorn.
#
# Needs: the package gunicorn. /srv/www/NAME/app.py defines the application `app`.
# Does: gunicorn takes the socket of greenroomd by itself (LISTEN_FDS), and reports that it is ready (Type=notify).
#   --timeout 0 switches off the watchdog of its workers: otherwise workers that were suspended for longer than the timeout are
#   killed by gunicorn when they are woken, and a request can be lost with them.
# Change: --workers, User=.
[App]
Name=Application %i
ExecStart=/usr/bin/gunicorn --workers 1 --threads 4 --timeout 0 app:app
Type=notify
Role=worker
User=www-data
WorkingDirectory=/srv/www/%i

[Lifecycle]
LaunchDeadlineSec=30s
TerminateDeadlineSec=35s
IdleSec=10s
UnloadAfterSec=1h

[Memory]
MemoryMax=512M

[Wake]
ListenStream=/run/sites/%i.sock
SocketUser=www-data
SocketMode=0660
