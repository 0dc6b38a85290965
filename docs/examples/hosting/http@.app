# A web site per tenant, with Python's standard library.
#
# Needs: python3. The files of the site NAME are in /srv/www/NAME.
# Does: after `greenroomctl enable http@NAME`, greenroomd listens on /run/sites/NAME.sock. The first connection launches the site. It
#   is suspended 10s after its last work, woken by the next connection, and ended after an hour without one: it has no memory then.
# Change: User=, if each site needs a user of its own, for example User=site-%i. The proxy in front is in nginx.conf.
[App]
Name=Site %i
ExecStart=/usr/bin/python3 /usr/share/doc/greenroom/examples/hosting/pages.py
Type=listening
Role=worker
User=www-data
WorkingDirectory=/srv/www/%i
LimitNOFILE=256

[Lifecycle]
IdleSec=10s
UnloadAfterSec=1h

[Memory]
MemoryMax=256M

[Wake]
ListenStream=/run/sites/%i.sock
SocketUser=www-data
SocketMode=0660
