# A push wakes or launches it: install feed.py as /usr/local/bin/feed.py.
[App]
Name=Feed
Type=notify
ExecStart=/usr/local/bin/feed.py

[Lifecycle]
BackgroundModes=push
