# Stops the service and checks that no process, cgroup or failed unit is left.
manifest polite "ready"
manifest idle "fork 2 ready"
# An app with a restoration state, which traces the state at its launch.
manifest keeps "stored store state ready" Environment=TRACE=/run/vm-test/kept
rm -f /run/vm-test/kept
ctl reload >/dev/null
ctl launch idle --background >/dev/null
ctl launch keeps --background >/dev/null
check "idle is suspended" wait_for 20 is idle suspended
ctl launch polite >/dev/null
polite=$(pid polite) idle=$(pid idle)
check "the service stops" systemctl stop greenroomd
check "its apps have ended" test ! -e "/proc/$polite" -a ! -e "/proc/$idle"
check "the cgroup of the apps is removed" wait_for 20 test ! -e /sys/fs/cgroup/greenroom.slice/greenroom-apps.service
check "no process is left" fails pgrep -f 'greenroom|vm-test/greenroom-testapp'
check "no unit failed" same "$(systemctl list-units --failed --no-legend)" ""
check "the result of both services is success" same "$(property greenroomd Result)/$(property greenroom-apps Result)" success/success
check "the receipts are saved" eval "grep -q '\"polite\"' /var/lib/greenroom/receipts.jsonl"
check "the service starts again" systemctl start greenroomd
check "the receipts are loaded" receipt polite polite
check "the first launch has no restoration state" fails grep -q state /run/vm-test/kept
ctl launch keeps --background >/dev/null
check "the restoration state of an app is restored after the stop" grep -q state /run/vm-test/kept
ctl terminate keeps >/dev/null
rm $apps/keeps.app
# A daemon that is killed and not restarted: no process could thaw the frozen apps, so they are killed too.
ctl launch idle --background >/dev/null
check "idle is suspended again" wait_for 20 is idle suspended
idle=$(pid idle)
systemctl kill --kill-who main -s KILL greenroomd
systemctl stop greenroomd
check "apps are killed when the service stops after the daemon was killed" wait_for 20 test ! -e "/proc/$idle"
check "greenroom-apps.service is not active" fails systemctl is-active greenroom-apps
systemctl reset-failed
systemctl start greenroomd
