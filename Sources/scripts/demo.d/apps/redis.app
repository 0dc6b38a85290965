# A program that tells systemd when it is ready, and so tells Greenroom.
[App]
Name=Redis
Type=notify
ExecStart=/usr/bin/redis-server --supervised systemd --port 0 --unixsocket @FOLDER@/redis.sock --save "" --dir @FOLDER@
