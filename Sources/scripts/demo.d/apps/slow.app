# Is told to enter the background and takes its time.
[App]
Name=Slow
Type=notify
ExecStart=@HERE@/slow

[Signals]
EnterBackground=SIGUSR1
