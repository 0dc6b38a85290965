# Does not enter the background in time.
[App]
Name=Slow
Type=notify
ExecStart=@HERE@/slow

[Signals]
EnterBackground=SIGUSR1
