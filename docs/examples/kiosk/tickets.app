# An app of a kiosk: install kiosk.py as /usr/local/bin/kiosk.py.
[App]
Name=Tickets
Type=notify
ExecStart=/usr/local/bin/kiosk.py
URLSchemes=tickets

[Lifecycle]
BackgroundTimeSec=1min

[Memory]
MemoryMax=300M
