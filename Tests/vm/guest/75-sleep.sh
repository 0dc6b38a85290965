# Apps are in the background while the machine is suspended and while the session is locked (L15).
inhibits() { systemd-inhibit --list --no-legend | grep -i greenroom | grep -q sleep; }
changed() { journalctl -b -o cat GREENROOM_APP=awake GREENROOM_STATE="$1" GREENROOM_REASON="$2" | grep -q .; }
manifest awake "ready" '[Lifecycle]' ProtectedData=yes
manifest slow "background=ignore ready" '[Lifecycle]' BackgroundDeadlineSec=3s
ctl reload >/dev/null
ctl launch awake >/dev/null
check "the daemon holds a delay inhibitor for sleep" wait_for 10 inhibits

# systemd-suspend.service does not suspend the kernel: an emulated machine would not wake up. logind works as usual.
mkdir -p /run/systemd/system/systemd-suspend.service.d
printf '%s\n' '[Service]' ExecStart= \
    'ExecStart=/bin/sh -c "greenroomctl list >/run/vm-test/asleep; sleep 2; touch /run/vm-test/slept"' \
    >/run/systemd/system/systemd-suspend.service.d/test.conf
systemctl daemon-reload
began=$SECONDS
check "systemctl suspend succeeds" systemctl suspend
check "the machine slept" wait_for 30 test -e /run/vm-test/slept
check "the daemon released its inhibitor before the limit of logind" test $((SECONDS - began)) -lt 6
check "the app was in the background while the machine slept" grep -qE '^awake +(background|suspended)' /run/vm-test/asleep
check "the state change has the reason" changed background beforeSleep
check "after the sleep the app is active again" wait_for 20 is awake active
check "the app is notified that protected data is available" grep -qx available /run/greenroom/inbox/awake/protectedData
check "the daemon holds an inhibitor again" wait_for 10 inhibits

ctl launch slow >/dev/null
wait_for 20 is awake suspended
rm -f /run/vm-test/slept
check "systemctl suspend succeeds with an app that does not respond" systemctl suspend
check "the machine slept" wait_for 30 test -e /run/vm-test/slept
check "the app that did not respond was killed" receipt slow 0x8badf00d background
rm -r /run/systemd/system/systemd-suspend.service.d
systemctl daemon-reload

# A session with a seat, as a display manager creates it.
systemd-run --quiet --unit seat -p PAMName=login -p User=user -p TTYPath=/dev/tty1 -p StandardInput=tty sleep 600
session() { loginctl list-sessions --no-legend | awk '/seat0/ { print $1; exit }'; }
lock() {
    busctl call org.freedesktop.login1 "$(loginctl show-session "$(session)" >/dev/null && busctl call \
        org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager GetSession s "$(session)" |
        cut -d'"' -f2)" org.freedesktop.login1.Session SetLockedHint b "$1"
}
if [ ! -e /dev/tty1 ] || ! wait_for 15 eval '[ -n "$(session)" ]' >/dev/null 2>&1; then
    skip "lock: this machine has no session with a seat"
elif ! lock true >/dev/null 2>&1; then
    # Some versions of logind accept the hint only from the user of the session.
    skip "lock: logind does not let root lock a session"
else
    lock false
    ctl activate awake >/dev/null
    lock true
    check "the app enters the background when the session is locked" wait_for 20 eval '! is awake active'
    lock false
    check "the app is active again when the session is unlocked" wait_for 20 is awake active
fi
systemctl stop seat
rm -f $apps/slow.app
ctl terminate awake >/dev/null 2>&1
