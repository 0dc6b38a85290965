# Timers, hooks, and events of the machine at their real sources (L30, L33, L57).
inbox=/run/greenroom/inbox
cat >/usr/local/bin/note <<'END'
#!/bin/sh
echo "$1 $GREENROOM_STATE $GREENROOM_REASON ${GREENROOM_SLEPT_SEC-}" >>/tmp/notes
END
chmod +x /usr/local/bin/note
cat >$apps/clock.app <<'END'
[App]
ExecStart=/bin/sleep 100000
[Wake]
OnCalendar=*:*:0/20
AccuracySec=1s
END
cat >$apps/aware.app <<'END'
[App]
ExecStart=/bin/sleep 100000
Notifications=time locale
[Lifecycle]
ExecBeforeSuspend=/usr/local/bin/note before
ExecAfterResume=/usr/local/bin/note after
END
ctl reload >/dev/null
check "list-timers shows the next time" has "$(ctl list-timers)" clock
check "a timer launches an app in the background" wait_for 60 eval 'is clock background || is clock suspended'
check "the next time is shown" has "$(ctl --json status clock)" '"timers"'
ctl terminate clock >/dev/null
rm $apps/clock.app

ctl launch aware >/dev/null
zone=$(timedatectl show --property Timezone --value)
timedatectl set-timezone Asia/Tokyo
check "an app in the foreground is notified of the new time zone" wait_for 30 grep -q Asia/Tokyo $inbox/aware/time
ctl background aware >/dev/null
check "it is suspended" wait_for 30 is aware suspended
check "its hook ran before" has "$(cat /tmp/notes)" "before suspended idle"
mkdir -p /etc/default
cp /etc/default/locale /tmp/locale.before 2>/dev/null
echo LANG=de_DE.UTF-8 >/etc/locale.conf
echo LANG=de_DE.UTF-8 >/etc/default/locale
timedatectl set-timezone "$zone"
check "a suspended app is not woken for a notification" fails wait_for 5 fails is aware suspended
ctl activate aware >/dev/null
check "it finds the new locale when it runs again" wait_for 30 grep -q de_DE $inbox/aware/locale
check "its hook ran after the resume, and knows how long it slept" wait_for 30 grep -q "^after .* [0-9]" /tmp/notes
cat /tmp/notes | sed 's/^/     /'
rm -f /etc/locale.conf
if [ -e /tmp/locale.before ]; then cp /tmp/locale.before /etc/default/locale; else rm -f /etc/default/locale; fi
ctl terminate aware >/dev/null
rm -f $apps/aware.app /usr/local/bin/note /tmp/notes
ctl reload >/dev/null

# Devices of the kernel that come and go (Notifications=accessory display, WakeOnDevice=). An app in the foreground gets each change, so
# the test knows when the daemon has seen it; the other one sleeps, and gets what is different when it runs again, if anything is.
printf '%s\n' '[App]' 'ExecStart=/bin/sleep 100000' 'Notifications=accessory display' | tee $apps/witness.app >$apps/sleeper.app
cat >$apps/game.app <<'END'
[App]
ExecStart=/bin/sh -c 'echo $$GREENROOM_LAUNCH_REASON >/run/vm-test/reason; exec sleep 100000'
[Wake]
WakeOnDevice=input:ID_INPUT_JOYSTICK=1
END
ctl reload >/dev/null
ctl launch sleeper >/dev/null
ctl background sleeper >/dev/null
wait_for 30 is sleeper suspended
ctl launch witness >/dev/null
# knows APP KIND TEXT: what the app was notified of last contains the text.
knows() { grep -qF -- "$3" "$inbox/$1/$2"; }
# plug, unplug: the controller, until the app in the foreground knows of it.
plug() {
    systemd-run --quiet --collect --unit gamepad /root/vm-test/gamepad.py
    wait_for 60 knows witness accessory 'input Test Gamepad'
}
unplug() {
    systemctl stop gamepad
    wait_for 60 fails knows witness accessory 'input Test Gamepad'
}
# wakes_up APP: it runs in the foreground, and has its notifications since before that.
wakes_up() { ctl activate "$1" >/dev/null && is "$1" active; }
# sleeps_again: the other app is in the foreground.
sleeps_again() { rm -f $inbox/sleeper/*; ctl activate witness >/dev/null; wait_for 30 is sleeper suspended; }
modprobe -q uhid
if [ -e /dev/uhid ]; then
    check "an app in the foreground is notified of a game controller that is attached" plug
    check "it launches the app that names it in WakeOnDevice=" wait_for 30 grep -q accessory /run/vm-test/reason
    check "the app that sleeps is not woken" is sleeper suspended
    check "it is notified of its removal" unplug
    check "an app that slept is not notified of a controller that was attached and detached meanwhile" eval \
        'wakes_up sleeper && [ ! -e $inbox/sleeper/accessory ]'
    check "it sleeps again" sleeps_again
    wait_for 60 is game suspended
    plug
    check "a controller wakes the app that names it" wait_for 30 eval 'journal_of GREENROOM_APP=game | grep -q "(woken)"'
    check "it is notified of a controller that is still attached when it runs again" eval \
        'wakes_up sleeper && knows sleeper accessory "input Test Gamepad"'
    sed 's/^/     accessory: /' $inbox/sleeper/accessory
    check "it sleeps again" sleeps_again
    unplug
    check "it is notified of one that was detached while it slept" eval \
        'wakes_up sleeper && [ -e $inbox/sleeper/accessory ] && fails knows sleeper accessory "input Test Gamepad"'
    sed 's/^/     accessory: /' $inbox/sleeper/accessory
    check "it sleeps again" sleeps_again
else
    skip "accessories: the kernel has no uhid"
fi
# A graphics card that is removed from its bus takes its screen with it.
card=$(realpath -e /sys/class/drm/card0/device 2>/dev/null)
if [ -e "$card/remove" ]; then
    disconnect() {
        echo 1 >"$card/remove"
        wait_for 60 fails knows witness display ' connected'
    }
    connect() {
        echo 1 >/sys/bus/pci/rescan
        wait_for 60 knows witness display ' connected'
    }
    check "an app in the foreground is notified of a display that is removed" eval 'disconnect && knows witness display none'
    check "the app that sleeps is not woken" is sleeper suspended
    check "it is notified of its return" connect
    check "an app that slept is not notified of a display that was removed and connected again meanwhile" eval \
        'wakes_up sleeper && [ ! -e $inbox/sleeper/display ]'
    check "it sleeps again" sleeps_again
    disconnect
    check "it is notified of a display that was removed while it slept" eval 'wakes_up sleeper && knows sleeper display none'
    check "it sleeps again" sleeps_again
    connect
    check "it is notified of one that was connected while it slept" eval \
        'wakes_up sleeper && knows sleeper display " connected"'
    sed 's/^/     display: /' $inbox/sleeper/display
else
    skip "displays: the machine has no graphics card that its kernel knows"
fi
for app in witness sleeper game; do ctl terminate $app >/dev/null 2>&1; rm -f $apps/$app.app; done
ctl reload >/dev/null
