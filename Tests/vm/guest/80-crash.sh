# Kills the daemon. Its apps keep running, and the next daemon recovers their state.
cat >/usr/local/bin/late <<'END'
#!/bin/bash
# Reports that it is ready when the file exists.
until [ -e /run/vm-test/say ]; do sleep 0.1; done
systemd-notify --ready --no-block
touch /run/vm-test/said
exec sleep 3600
END
chmod +x /usr/local/bin/late
printf '%s\n' '[App]' Type=notify ExecStart=/usr/local/bin/late '[Lifecycle]' LaunchDeadlineSec=5min >$apps/late.app
manifest idle "ready"
manifest front "ready"
manifest passing "ready"
ctl reload >/dev/null
ctl launch idle --background >/dev/null
ctl launch passing --background >/dev/null
ctl launch front >/dev/null
check "idle is suspended" wait_for 20 is idle suspended
check "front is active" is front active
wait_for 20 is passing suspended
idle=$(pid idle) front=$(pid front) passing=$(pid passing) daemon=$(property greenroomd MainPID)
runs=$(property greenroomd NRestarts)
restarted() { [ "$(property greenroomd NRestarts)" -gt "$1" ] && systemctl is-active greenroomd; }
settings() {
    mkdir -p /run/systemd/system/greenroomd.service.d
    printf '%s\n' "$@" >/run/systemd/system/greenroomd.service.d/test.conf
    systemctl daemon-reload
}

# Delays the restart so that the apps can be checked without a daemon.
settings '[Unit]' StartLimitIntervalSec=0 '[Service]' RestartSec=5s
rm -f /run/vm-test/say /run/vm-test/said
ctl launch late --background >/run/vm-test/late 2>&1 &
wait_for 20 is late launching
late=$(pid late)
kill -KILL "$daemon"
check "without a daemon, the suspended app stays frozen" frozen idle
check "without a daemon, the other apps run" kill -0 "$front" "$late"
touch /run/vm-test/say
kill -KILL "$passing"
check "without a daemon, an app reports that it is ready and another one ends" \
    wait_for 20 eval "[ -e /run/vm-test/said ] && [ ! -e /proc/$passing ]"
check "the daemon has not been restarted yet" fails systemctl is-active greenroomd
check "systemd restarts the daemon after SIGKILL" wait_for 30 restarted "$runs"
check "the daemon is another process" fails same "$(property greenroomd MainPID)" "$daemon"
check "greenroomctl connects to the new daemon" wait_for 10 ctl list
check "the suspended app has the same process and is suspended" eval "is idle suspended && same $idle \$(pid idle) && frozen idle"
check "the app in the foreground has the same process and is active" eval "is front active && same $front \$(pid front)"
check "the notification that was sent without a daemon is delivered" wait_for 20 eval "is late suspended && same $late \$(pid late)"
wait
check "the waiting greenroomctl launch gets its result from the new daemon" has "$(cat /run/vm-test/late)" "late: background"
check "the app that ended without a daemon has a receipt" wait_for 10 receipt passing suspended
ctl receipts -n 1 passing | sed 's/^/     /'
check "both apps change their state" eval "ctl activate idle && wait_for 20 is front suspended"
check "greenroom-apps.service is active" systemctl is-active greenroom-apps
check "apps can be launched" ctl launch front
wait_for 20 is idle suspended

# The watchdog of systemd replaces a daemon that hangs.
settings '[Unit]' StartLimitIntervalSec=0 '[Service]' WatchdogSec=8s
kill -KILL "$(property greenroomd MainPID)"
sleep 1
check "the daemon is active with a watchdog of 8 s" wait_for 30 eval '[ "$(property greenroomd WatchdogUSec)" = 8s ] && systemctl is-active greenroomd'
runs=$(property greenroomd NRestarts)
# An app of another user connects to its own socket without a pause, and clients query the daemon without a pause.
install -m 755 flood.py /usr/local/bin/vm-flood
printf '%s\n' '[App]' ExecStart=/usr/local/bin/vm-flood User=nobody WorkingDirectory=/ Role=worker >$apps/flood.app
ctl reload >/dev/null
check "an app that floods the daemon is launched" ctl launch flood --background
rm -f /run/vm-test/enough
while [ ! -e /run/vm-test/enough ]; do ctl list || break; done >/dev/null 2>/run/vm-test/queries &
beat=$(property greenroomd WatchdogTimestampMonotonic)
# More than WatchdogSec=.
if [ -e quick ]; then busy=10 least=4000000; else busy=12 least=5000000; fi
sleep $busy
check "a busy daemon notifies the watchdog in time" same "$(property greenroomd NRestarts)" "$runs"
check "the watchdog was notified meanwhile" test "$(property greenroomd WatchdogTimestampMonotonic)" -gt $((beat + least))
touch /run/vm-test/enough
wait
check "a busy daemon answers all queries" same "$(cat /run/vm-test/queries)" ""
check "the journal says that the app waits" eval "journalctl -b -u greenroomd -o cat | grep -q 'its messages, connections and input wait'"
check "status counts how often the app began to flood" eval "ctl --json status flood | grep -q '\"floods\": *[1-9]'"
ctl terminate flood >/dev/null
rm $apps/flood.app
ctl reload >/dev/null
kill -STOP "$(property greenroomd MainPID)"
check "systemd restarts a daemon that hangs" wait_for 30 restarted "$runs"
journalctl -b -u greenroomd -o cat -n 50 | grep -iE 'watchdog|recovered' | sed 's/^/     /'
check "the suspended app has the same process and is suspended" eval "is idle suspended && same $idle \$(pid idle) && frozen idle"
check "the app in the foreground has the same process and is active" eval "is front active && same $front \$(pid front)"

# The watchdog's signal: Swift's handler of crashes must not receive it first.
check "the service disables the backtraces of the Swift runtime" has "$(property greenroomd Environment)" "SWIFT_BACKTRACE=enable=no"
runs=$(property greenroomd NRestarts)
kill -ABRT "$(property greenroomd MainPID)"
check "systemd restarts the daemon after its first SIGABRT" wait_for 30 restarted "$runs"

# Kills the daemon at random times while apps are launched and terminated.
settings '[Unit]' StartLimitIntervalSec=0 '[Service]' RestartSec=20ms
kill -KILL "$(property greenroomd MainPID)"
rm -f /run/vm-test/enough
for app in load1 load2; do
    manifest $app "ready"
    printf '%s\n' '[Lifecycle]' LaunchDeadlineSec=1min TerminateDeadlineSec=1min >>$apps/$app.app
done
wait_for 30 ctl reload
world() { for app in idle front late; do echo "$app" "$(state $app)" "$(pid $app)" "$(ls -d $group/$app.run*)"; done; }
before=$(world)
load() {
    while [ ! -e /run/vm-test/enough ]; do
        ctl launch "$1" --background || echo "$1: launch: status $?"
        ctl terminate "$1" || echo "$1: terminate: status $?"
    done >/run/vm-test/load-"$1" 2>&1
}
for app in load1 load2; do load $app & done
kills=0 same=0 most=40
[ ! -e quick ] || most=10
while [ $kills -lt $most ]; do
    sleep "0.$((RANDOM % 10))"
    daemon=$(property greenroomd MainPID)
    [ "$daemon" -gt 1 ] && kill -KILL "$daemon" 2>/dev/null || continue
    kills=$((kills + 1))
    # greenroomctl waits 10 s for the next daemon. On an emulated machine ten kills in a row can take longer than that.
    [ $((kills % 5)) != 0 ] || { wait_for 30 ctl list && [ "$(world)" = "$before" ] && same=$((same + 1)); }
done
wait_for 30 ctl list
touch /run/vm-test/enough
wait
echo "     $kills kills; $(cat /run/vm-test/load-* | wc -l) requests meanwhile"
check "after $kills kills at random times every app has the same process and state" same "$(world)" "$before"
check "every app had the same process and state during the kills" test $same -eq $((most / 5))
check "no request was lost or failed" \
    same "$(grep -hvE ': (background|suspended)$|[Tt]erminated on request' /run/vm-test/load-load*)" ""
for app in load1 load2; do
    launches=$(ctl --json status $app | grep -o '"launches": *[0-9]*' | grep -o '[0-9]*')
    receipts=$(ctl --json receipts $app | grep -o '"id":' | wc -l)
    # What is ended before its program is executed has a receipt, but was no launch (L9).
    early=$(ctl --json receipts $app | grep -o '"state":"launching"' | wc -l)
    echo "     $app: $launches launches, $receipts receipts, $early of them before the program was executed"
    check "$app: each of its $launches launches has a receipt" \
        test $((receipts - early)) -le "$launches" -a "$launches" -le "$receipts"
    [ "$(ctl --json receipts $app | grep -o '"namespace":"[a-z]*"' | sort -u)" = '"namespace":"exit"' ] ||
        journalctl -b -o short-precise GREENROOM_APP=$app | tail -n 60 | sed 's/^/     /'
    check "$app: all cgroups are removed" wait_for 10 eval "! ls -d $group/$app.run*"
done
rm -r /run/systemd/system/greenroomd.service.d
systemctl daemon-reload
for app in idle front late; do ctl terminate $app >/dev/null 2>&1; done
rm -f $apps/{late,passing,load1,load2}.app
ctl reload >/dev/null
