# The display of a kiosk as an app of the system's daemon: sway. It is ready when it listens on its sockets. Without a user's session it
# needs seatd, and User=kiosk in its group. Where the session of a user starts sway, leave this file out (docs/KIOSK.md).
[App]
Name=Display
Type=listening
ExecStart=/usr/bin/sway -c /etc/greenroom/sway.conf
Role=worker
LaunchAtStart=background
Relaunch=always
User=kiosk
Environment=XDG_RUNTIME_DIR=/run/user/1000 SWAYSOCK=/run/user/1000/sway.sock

[Lifecycle]
# Apps need it: it is not suspended, not killed for memory, and ends after them.
Essential=yes
BackgroundCPU=ignore
LaunchDeadlineSec=15s
