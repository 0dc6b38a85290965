# A shell script that takes part: install notes as /usr/local/bin/notes.
[App]
Name=Notes
Type=notify
ExecStart=/usr/local/bin/notes
StateDirectory=notes

[Lifecycle]
BackgroundTimeSec=1min

[Signals]
EnterBackground=SIGUSR1
