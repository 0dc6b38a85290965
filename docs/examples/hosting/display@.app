# A display with a program per user: Xvnc and xterm. The first VNC client launches it.
#
# Needs: the packages tigervnc-standalone-server and xterm. NUMBER is from 10 to 99: `greenroomctl enable display@10` holds the port
#   5910 for VNC clients, and the display is :10.
# Does: Xvnc takes a listening socket as its standard input (-inetd), so a shell moves the descriptor 3 there. The display and its
#   programs are suspended together when nothing changes on the screen and the user is away: what a program shows at set times, such
#   as the seconds of a clock, is shown when a client is active. It has no UnloadAfterSec=, because open documents would be lost.
# Change: User=, the program, -geometry, -SecurityTypes (None: the port must be reachable by trusted users only).
[App]
Name=Display %i
ExecStart=/bin/sh -c "rm -f /tmp/.X11-unix/X%i; /usr/bin/Xtigervnc :%i -inetd -nolisten tcp -geometry 1024x768 -SecurityTypes None <&3 3<&- & until [ -S /tmp/.X11-unix/X%i ]; do sleep 0.1; done; DISPLAY=:%i exec /usr/bin/xterm -e /bin/bash 3<&-"
Type=listening
Role=worker
User=nobody
Environment=HOME=/tmp

[Lifecycle]
LaunchDeadlineSec=30s
IdleSec=10s

[Memory]
MemoryMax=1G

[Wake]
ListenStream=127.0.0.1:59%i
