# Type=notify, and nobody ever says READY=1: it hangs in its launch.
[App]
Name=Stuck
Type=notify
ExecStart=/usr/bin/sleep infinity
