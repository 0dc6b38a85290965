# A daemon that dies leaves its apps alive; the next one is there at once.
manifest idle "ready"
manifest front "ready"
ctl reload >/dev/null
ctl launch idle --background >/dev/null
ctl launch front >/dev/null
check "one is suspended" wait_for 20 is idle suspended
check "one is in front" is front active
idle=$(pid idle) front=$(pid front) daemon=$(property greenroomd MainPID)
runs=$(property greenroomd NRestarts)
restarted() { [ "$(property greenroomd NRestarts)" -gt "$1" ] && systemctl is-active greenroomd; }

kill -KILL "$daemon"
check "after SIGKILL systemd starts it again" wait_for 30 restarted "$runs"
check "it is another process" refuse same "$(property greenroomd MainPID)" "$daemon"
check "greenroomctl finds it" wait_for 10 ctl list
if there reexec; then
    check "the suspended app is the same, and suspended" eval "is idle suspended && same $idle \$(pid idle) && frozen idle"
    check "the one in front is the same, and active" eval "is front active && same $front \$(pid front)"
    check "both still do what they are told" eval "ctl activate idle && wait_for 20 is front suspended"
else
    skip "apps are taken over after a crash: not there yet"
    check "what the crashed one left was cleared away" wait_for 10 eval 'same "$(cat $group/*.run*/cgroup.procs)" ""'
fi
check "the apps' unit never stopped" systemctl is-active greenroom-apps
check "apps can be launched" ctl launch front

# A daemon that hangs is found by the watchdog.
mkdir -p /run/systemd/system/greenroomd.service.d
printf '%s\n' '[Service]' WatchdogSec=3s >/run/systemd/system/greenroomd.service.d/test.conf
systemctl daemon-reload
kill -KILL "$(property greenroomd MainPID)"
sleep 1
check "it is up again, with a watchdog of 3 s" wait_for 30 eval '[ "$(property greenroomd WatchdogUSec)" = 3s ] && systemctl is-active greenroomd'
runs=$(property greenroomd NRestarts)
sleep 5
check "it keeps the watchdog content" same "$(property greenroomd NRestarts)" "$runs"
kill -STOP "$(property greenroomd MainPID)"
check "a daemon that hangs is replaced" wait_for 60 restarted "$runs"
rm -r /run/systemd/system/greenroomd.service.d
systemctl daemon-reload
ctl terminate idle >/dev/null 2>&1
ctl terminate front >/dev/null 2>&1
