# An unmodified program: Debian's python3 as a web server.
[App]
Name=Files
ExecStart=/usr/bin/python3 -m http.server 8765 --bind 127.0.0.1
Type=listening
WorkingDirectory=/usr/share
