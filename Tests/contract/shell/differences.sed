# What a shell script does differently, as changes of the transcripts of all libraries (README.md).

# `app answer` names a result in each answer. It counts only for push and wake.
s/^\(expect Answer \[[0-9]*, \){}\]$/\1{"result": "new-data"}]/

# `app events` prints whole seconds, for the arithmetic of the shell.
s/^\(expect SetStateSummary \["resume [0-9]*\)\.[0-9]/\1/

# `app task` takes part for the end of its task.
/^expect BeginTask /i\
expect Attach [{"handles": ["tasksExpiring"], "serial": "*", "library": "*"}]\
reply a{sv} [{"app": "contract", "run": 1, "serial": 1}]

# It does not end a task that was refused.
/^error org\.greenroom\.Error\.NoBackgroundTime /{
    n
    N
    d
}
