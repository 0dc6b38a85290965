# Begins a background task and never ends it. It has 6 s instead of 30 s, so that the demo stays short.
[App]
Name=Leak
Type=notify
ExecStart=@HERE@/leak

[Lifecycle]
BackgroundTimeSec=6s
ExpirationNoticeSec=2s

[Signals]
TaskExpiring=SIGUSR2
