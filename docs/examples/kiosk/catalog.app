# An app of a kiosk: install kiosk.py as /usr/local/bin/kiosk.py.
[App]
Name=Catalog
Type=notify
ExecStart=/usr/local/bin/kiosk.py
URLSchemes=catalog
