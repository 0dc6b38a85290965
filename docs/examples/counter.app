# A Python program that takes part in the whole lifecycle: install counter.py as /usr/local/bin/counter.py.
[App]
Name=Counter
Type=notify
ExecStart=/usr/local/bin/counter.py
StateDirectory=counter

[Lifecycle]
BackgroundModes=push

[Signals]
EnterBackground=SIGUSR1
EnterForeground=SIGUSR2
MemoryWarning=SIGRTMIN+1
TaskExpiring=SIGRTMIN+2
Notification=SIGRTMIN+3
