# Type=notify without READY=1: the launch does not finish.
[App]
Name=Stuck
Type=notify
ExecStart=/usr/bin/sleep infinity
