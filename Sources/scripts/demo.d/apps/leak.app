# Begins a background task and does not end it. The background time is 6s instead of 30s to keep the demo short.
[App]
Name=Leak
Type=notify
ExecStart=@HERE@/leak

[Lifecycle]
BackgroundTimeSec=6s
ExpirationNoticeSec=2s

[Signals]
TaskExpiring=SIGUSR2
