# Finishes its file in the background: install uploader.py as /usr/local/bin/uploader.py.
[App]
Name=Uploader
Type=notify
ExecStart=/usr/local/bin/uploader.py
StateDirectory=uploader
URLSchemes=upload
