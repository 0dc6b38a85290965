/// Keys of systemd's services that are no keys of a manifest, with what has their purpose: the rest of a warning.
///
/// Names such as `Restart` are too different from ours to be found by their letters, or would be taken for a wrong one.
let serviceKeys: [String: String] = [
    "Restart": "use 'Relaunch' in section [App]",
    "RestartSec": "'Relaunch' in section [App] has intervals of its own",
    "TimeoutStartSec": "use 'LaunchDeadlineSec' in section [Lifecycle]",
    "TimeoutStopSec": "use 'TerminateDeadlineSec' in section [Lifecycle]",
    "TimeoutSec": "use 'LaunchDeadlineSec' and 'TerminateDeadlineSec' in section [Lifecycle]",
    "KillSignal": "use 'Terminate' in section [Signals]",
    "ExecStop": "use 'Terminate' in section [Signals], or let the program handle SIGTERM",
    "ExecReload": "let the program handle a signal",
    "ExecStartPre": "let 'ExecStart' in section [App] be a script that ends with exec",
    "ExecCondition": "let 'ExecStart' in section [App] be a script that ends with exec",
    "ExecStartPost": "let the program do this when it has started",
    "ExecStopPost": "let the program do this before it ends, or at its next launch",
    "RemainAfterExit": "an app has a main process as long as it runs",
    "CPUQuota": "use 'BackgroundCPULimit' in section [Lifecycle]",
    "SyslogIdentifier": "the identifier is the ID of the app",
    "WantedBy": "use 'LaunchAtStart' in section [App]",
    "Nice": "start the program with nice(1) in 'ExecStart'",
]
