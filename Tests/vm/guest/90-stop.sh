# Stopping leaves nothing behind.
manifest polite "ready"
manifest idle "fork 2 ready"
ctl reload >/dev/null
ctl launch idle --background >/dev/null
check "one is suspended" wait_for 20 is idle suspended
ctl launch polite >/dev/null
polite=$(pid polite) idle=$(pid idle)
check "the service stops" systemctl stop greenroomd
check "its apps have ended" test ! -e "/proc/$polite" -a ! -e "/proc/$idle"
check "their group, too" wait_for 20 test ! -e /sys/fs/cgroup/greenroom.slice/greenroom-apps.service
check "no process of it is left" refuse pgrep -f 'greenroom|vm-test/greenroom-testapp'
check "no unit failed" same "$(systemctl list-units --failed --no-legend)" ""
check "it was no failure" same "$(property greenroomd Result)/$(property greenroom-apps Result)" success/success
check "the receipts say how they ended" eval "grep -q '\"polite\"' /var/lib/greenroom/receipts.jsonl"
check "it starts again" systemctl start greenroomd
check "and remembers the receipts" receipt polite polite
# Gone for good: nobody is left who could thaw what is frozen, so apps go with it.
ctl launch idle --background >/dev/null
check "one is suspended once more" wait_for 20 is idle suspended
idle=$(pid idle)
systemctl kill --kill-who main -s KILL greenroomd
systemctl stop greenroomd
check "a daemon that is killed and then stopped takes its apps along" wait_for 20 test ! -e "/proc/$idle"
check "no unit is left running" refuse systemctl is-active greenroom-apps
systemctl reset-failed
systemctl start greenroomd
