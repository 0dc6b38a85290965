# A shell script that takes part: install diary as /usr/local/bin/diary.
[App]
Name=Diary
Type=notify
ExecStart=/usr/local/bin/diary
StateDirectory=diary

[Lifecycle]
BackgroundTimeSec=1min

[Signals]
EnterBackground=SIGUSR1
