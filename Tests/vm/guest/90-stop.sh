# Stopping leaves nothing behind.
manifest polite "ready"
manifest idle "fork 2 ready"
# One with a restoration state, that notes with which it was launched.
manifest keeps "stored store state ready" Environment=TRACE=/run/vm-test/kept
rm -f /run/vm-test/kept
ctl reload >/dev/null
ctl launch idle --background >/dev/null
ctl launch keeps --background >/dev/null
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
check "there was no restoration state at the first launch" refuse grep -q state /run/vm-test/kept
ctl launch keeps --background >/dev/null
check "an app's restoration state outlasts the stop" grep -q state /run/vm-test/kept
ctl terminate keeps >/dev/null
rm $apps/keeps.app
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
