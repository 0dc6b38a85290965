# A shell script that finishes its work when it enters the background.
[App]
Name=Diary
Type=notify
ExecStart=@HERE@/diary @FOLDER@/diary.txt

[Signals]
EnterBackground=SIGUSR1
