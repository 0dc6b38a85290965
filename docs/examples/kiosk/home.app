# The home app of a kiosk: it is in front when no other app is. Install kiosk.py as /usr/local/bin/kiosk.py.
[App]
Name=Home
Type=notify
ExecStart=/usr/local/bin/kiosk.py
URLSchemes=home
Role=home
LaunchAtStart=foreground

[Memory]
JetsamPriority=500
