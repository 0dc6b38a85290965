# A Swift program with a window for each note: build it with `swift build`, and install it as /usr/local/bin/notebook.
[App]
Name=Notebook
Type=notify
ExecStart=/usr/local/bin/notebook
StateDirectory=notebook
URLSchemes=notebook
