# Before the machine sleeps, and while its screen is locked, apps are in the background (L15).
inhibits() { systemd-inhibit --list --no-legend | grep -i greenroom | grep -q sleep; }
changed() { journalctl -b -o cat GREENROOM_APP=awake GREENROOM_STATE="$1" GREENROOM_REASON="$2" | grep -q .; }
manifest awake "ready" '[Lifecycle]' ProtectedData=yes
manifest slow "background=ignore ready" '[Lifecycle]' BackgroundDeadlineSec=3s
ctl reload >/dev/null
ctl launch awake >/dev/null
check "the daemon holds a delay inhibitor for sleep" wait_for 10 inhibits

# The kernel's part is left out: an emulated machine would not wake up. logind does all of its own.
mkdir -p /run/systemd/system/systemd-suspend.service.d
printf '%s\n' '[Service]' ExecStart= \
    'ExecStart=/bin/sh -c "greenroomctl list >/run/vm-test/asleep; sleep 2; touch /run/vm-test/slept"' \
    >/run/systemd/system/systemd-suspend.service.d/test.conf
systemctl daemon-reload
began=$SECONDS
check "the machine is sent to sleep" systemctl suspend
check "it slept" wait_for 30 test -e /run/vm-test/slept
check "it did not wait for longer than it takes" test $((SECONDS - began)) -lt 6
check "in its sleep the app was in the background" grep -qE '^awake +(background|suspended)' /run/vm-test/asleep
check "for that reason" changed background beforeSleep
check "afterwards it is in front again" wait_for 20 is awake active
check "it was told that its data is there" grep -qx available /run/greenroom/inbox/awake/protectedData
check "and the inhibitor is taken again" wait_for 10 inhibits

ctl launch slow >/dev/null
wait_for 20 is awake suspended
rm -f /run/vm-test/slept
check "the machine is sent to sleep once more" systemctl suspend
check "it slept" wait_for 30 test -e /run/vm-test/slept
check "after the one that does not answer was killed" receipt slow 0x8badf00d background
rm -r /run/systemd/system/systemd-suspend.service.d
systemctl daemon-reload

# A session at the machine's own screen, as a display manager makes it.
systemd-run --quiet --unit seat -p PAMName=login -p User=user -p TTYPath=/dev/tty1 -p StandardInput=tty sleep 600
session() { loginctl list-sessions --no-legend | awk '/seat0/ { print $1; exit }'; }
lock() {
    busctl call org.freedesktop.login1 "$(loginctl show-session "$(session)" >/dev/null && busctl call \
        org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager GetSession s "$(session)" |
        cut -d'"' -f2)" org.freedesktop.login1.Session SetLockedHint b "$1"
}
if [ ! -e /dev/tty1 ] || ! wait_for 15 eval '[ -n "$(session)" ]' >/dev/null 2>&1; then
    skip "lock: this machine has no seat with a screen"
elif ! lock true >/dev/null 2>&1; then
    # logind takes the hint from the session's own user alone.
    skip "lock: logind does not let root lock a session"
else
    lock false
    ctl activate awake >/dev/null
    lock true
    check "the screen is locked: the app goes to the background" wait_for 20 eval '! is awake active'
    lock false
    check "and is back when it is unlocked" wait_for 20 is awake active
fi
systemctl stop seat
rm -f $apps/slow.app
ctl terminate awake >/dev/null 2>&1
