# A program that supports systemd's notify protocol, which Greenroom uses too.
[App]
Name=Redis
Type=notify
ExecStart=/usr/bin/redis-server --supervised systemd --port 0 --unixsocket @FOLDER@/redis.sock --save "" --dir @FOLDER@
