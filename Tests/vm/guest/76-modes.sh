# Apps of which a process holds a block inhibitor of logind are not suspended, and neither are apps in a background mode (L28).
cat >/usr/local/bin/vm-modes <<'END'
#!/bin/sh
case $1 in
inhibit) systemd-inhibit --what=sleep --who=backup --why='copies files' sh -c 'until [ -e /run/vm-test/copied ]; do sleep 1; done' ;;
mode)
    systemd-notify X_GREENROOM_BEGIN_MODE=audio
    until [ -e /run/vm-test/played ]; do sleep 1; done
    systemd-notify X_GREENROOM_END_MODE=audio
    ;;
esac
exec sleep infinity
END
chmod 755 /usr/local/bin/vm-modes
rm -f /run/vm-test/copied /run/vm-test/played
printf '%s\n' '[App]' 'ExecStart=/usr/local/bin/vm-modes inhibit' StartupSec=0 >$apps/backup.app
printf '%s\n' '[App]' 'ExecStart=/usr/local/bin/vm-modes mode' StartupSec=0 NotifyAccess=all '[Lifecycle]' BackgroundModes=audio \
    >$apps/player.app
ctl reload >/dev/null
# logind need not emit a signal for the second inhibitor of a kind.
systemd-run --quiet --unit other-inhibitor systemd-inhibit --what=sleep --who=other --why=test sleep 600
wait_for 30 eval 'systemd-inhibit --list --no-legend | grep -q "^other"'
for app in backup player; do ctl launch $app --background >/dev/null; done
check "an app with an inhibitor of logind stays awake, and idle says why" wait_for 30 eval \
    'is backup background && has_reason backup inhibitor && has "$(ctl idle -v backup)" "by backup: copies files"'
check "an app in a mode stays awake, and idle says why" wait_for 30 eval \
    'is player background && has_reason player mode && has "$(why player)" "in the mode '\''audio'\''"'
sleep 5
check "both are still awake" eval 'is backup background && is player background'
touch /run/vm-test/copied /run/vm-test/played
check "the app is suspended once the inhibitor is released" wait_for 30 is backup suspended
check "the app is suspended once it has ended its mode" wait_for 30 is player suspended
check "the journal has the mode" eval 'journal_of GREENROOM_MODE=audio | grep -q "began"'
systemctl stop other-inhibitor
for app in backup player; do ctl terminate $app >/dev/null 2>&1; rm -f $apps/$app.app; done
ctl reload >/dev/null
