# What systemd asks of a service.
daemon=$(property greenroomd MainPID)
journal() { journalctl -b -u greenroomd -o cat "$@"; }

check "it contains apps in delegated cgroups, with all controllers" \
    has "$(journal | grep 'is ready')" "cgroup v2, delegated, controllers memory cpu io pids"
check "it listens to pressure without complaint" refuse grep -i 'pressure trigger' <(journal)
check "it is protected from the kernel's OOM killer" same "$(cat /proc/"$daemon"/oom_score_adj)" -900
check "its own group holds the daemon alone" \
    same "$(cat /sys/fs/cgroup/greenroom.slice/greenroomd.service/cgroup.procs)" "$daemon"
check "no setuid program is held back by it" grep -q '^NoNewPrivs:.0' /proc/"$daemon"/status
check "it has no power over the machine beyond its job (no CAP_SYS_ADMIN)" \
    same "$(( 0x$(awk '/^CapBnd/ { print $2 }' /proc/"$daemon"/status) >> 21 & 1 ))" 0

manifest one "ready"
check "systemctl reload reads manifests anew" systemctl reload greenroomd
check "the new one is there" is one notRunning
check "systemctl status says how many there are" same "$(property greenroomd StatusText)" "1 app"
echo '[App]' >$apps/wrong.app
check "a reload with an error fails, and says where" refuse systemctl reload greenroomd
check "the journal says where" wait_for 10 eval "journal | grep -q 'wrong.app.*ExecStart'"
rm $apps/wrong.app
check "SIGHUP does it, too" systemctl kill --kill-who main -s HUP greenroomd
check "the error is gone" wait_for 10 refuse eval "ctl list | grep -q wrong"
check "the daemon is the same" same "$(property greenroomd MainPID)" "$daemon"

beat=$(property greenroomd WatchdogTimestampMonotonic)
check "systemd hears its heartbeat" wait_for 25 eval '[ "$(property greenroomd WatchdogTimestampMonotonic)" -gt '"$beat"' ]'
