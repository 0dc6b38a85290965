# Before the machine sleeps, apps get to the background (L15).
if ! systemd-inhibit --list --no-legend 2>/dev/null | grep -qi greenroom; then
    skip "sleep: the daemon holds no delay inhibitor of logind's yet"
else
    manifest awake "ready"
    ctl reload >/dev/null
    ctl launch awake >/dev/null
    check "the daemon holds a delay inhibitor for sleep" \
        eval "systemd-inhibit --list --no-legend | grep -i greenroom | grep -q sleep"
    # Where the machine cannot really sleep, logind still says that it is about to, and that it is over.
    mkdir -p /run/systemd/system/systemd-suspend.service.d
    printf '%s\n' '[Service]' ExecStart= 'ExecStart=/usr/bin/sleep 2' >/run/systemd/system/systemd-suspend.service.d/test.conf
    systemctl daemon-reload
    check "the machine is sent to sleep" systemctl suspend
    check "the app got to the background before" wait_for 20 eval \
        "journalctl -b GREENROOM_APP=awake GREENROOM_STATE=background -o cat | grep -q ."
    check "and the inhibitor is taken again afterwards" wait_for 30 eval \
        "systemd-inhibit --list --no-legend | grep -i greenroom | grep -q sleep"
    rm -r /run/systemd/system/systemd-suspend.service.d
    systemctl daemon-reload
    ctl terminate awake >/dev/null 2>&1
fi
