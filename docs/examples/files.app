# A worker: an unmodified web server that is suspended when it is idle, and that a connection wakes.
[App]
Name=Files for other programs
ExecStart=/usr/bin/python3 -m http.server 8766 --bind 127.0.0.1
Type=listening
Role=worker
WorkingDirectory=/usr/share

[Lifecycle]
IdleSec=2s
