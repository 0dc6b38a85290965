# A shell script that takes part: install diary.sh as /usr/local/bin/diary.sh.
[App]
Name=Diary
Type=notify
ExecStart=/usr/local/bin/diary.sh
StateDirectory=diary
URLSchemes=diary

[Lifecycle]
BackgroundModes=push
