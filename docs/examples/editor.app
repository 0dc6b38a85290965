# A window for each document: install editor.py as /usr/local/bin/editor.py.
[App]
Name=Editor
Type=notify
ExecStart=/usr/local/bin/editor.py
StateDirectory=editor
URLSchemes=editor

[Lifecycle]
SnapshotPersistent=yes
