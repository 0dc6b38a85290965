# Checks the service: cgroups, hardening, reload, watchdog.
daemon=$(property greenroomd MainPID)
journal() { journalctl -b -u greenroomd -o cat "$@"; }

check "apps are in delegated cgroups with all controllers" \
    has "$(journal | grep 'is ready')" "cgroup v2, delegated, controllers memory cpu io pids"
check "there is no warning about pressure triggers" fails grep 'PSI trigger' <(journal)
check "the daemon is protected from the kernel's OOM killer" same "$(cat /proc/"$daemon"/oom_score_adj)" -900
check "the daemon and its launcher are the only processes in its cgroup" \
    same "$(ps -o comm= -p "$(paste -sd, /sys/fs/cgroup/greenroom.slice/greenroomd.service/cgroup.procs)" | sort | xargs)" \
    "greenroomd launcher"
check "NoNewPrivileges is not set for the daemon" grep -q '^NoNewPrivs:.0' /proc/"$daemon"/status
check "the daemon does not have CAP_SYS_ADMIN" \
    same "$(( 0x$(awk '/^CapBnd/ { print $2 }' /proc/"$daemon"/status) >> 21 & 1 ))" 0

# The machine has no swap, and everything else (ADMINISTRATION.md).
status=0
doctor=$(ctl doctor) || status=$?
printf '%s\n' "$doctor" | sed 's/^/     | /'
check "doctor's exit status is 1, because a feature is missing" same "$status" 1
check "doctor says that it is swap, what that costs, and what mends it" \
    has "$(grep -A 2 '^! ' <<<"$doctor" | tr -s '\n ' ' ')" "! swap none Cost: memory of suspended apps is freed only by ending them Remedy:"
check "doctor finds nothing else that costs a feature" has "$doctor" "1 check costs a feature"
check "doctor names the daemon that answers" has "$doctor" "greenroomd     $(ctl --version | cut -d' ' -f2) answers"

manifest one "ready"
check "systemctl reload reloads the manifests" systemctl reload greenroomd
check "the new app is known" is one notRunning
check "systemctl status shows the number of apps" same "$(property greenroomd StatusText)" "1 app"
echo '[App]' >$apps/wrong.app
check "a reload with an invalid manifest reloads the others" systemctl reload greenroomd
check "the journal names the file" wait_for 10 eval "journal | grep -q 'wrong.app.*ExecStart'"
rm $apps/wrong.app
check "SIGHUP reloads the manifests" systemctl kill --kill-who main -s HUP greenroomd
check "the invalid app is removed" wait_for 10 fails eval "ctl list | grep -q wrong"
check "the daemon is still the same process" same "$(property greenroomd MainPID)" "$daemon"

beat=$(property greenroomd WatchdogTimestampMonotonic)
check "systemd receives watchdog notifications" wait_for 25 eval '[ "$(property greenroomd WatchdogTimestampMonotonic)" -gt '"$beat"' ]'

# A daemon that is started in a terminal shows what its apps write, although there is a journal (L56).
terminal=/run/vm-test/terminal
mkdir -p $terminal/apps
printf '%s\n' '[App]' LaunchAtStart=background "ExecStart=/bin/sh -c 'echo shown here; exec sleep 1000'" >$terminal/apps/shown.app
NO_COLOR=1 script -qefc "timeout 60 greenroomd --config $terminal --runtime $terminal/run --state $terminal/state" $terminal/screen \
    >/dev/null 2>&1 </dev/null &
check "a daemon in a terminal shows what its apps write" wait_for 30 grep 'shown .*│ shown here' $terminal/screen
check "its log has the new state of an app in a column" grep 'shown .*  background   ready' $terminal/screen
check "it ends, and its app" wait_for 30 eval "greenroomctl --runtime $terminal/run terminate shown && pkill -f -- '--config $terminal '"
wait
