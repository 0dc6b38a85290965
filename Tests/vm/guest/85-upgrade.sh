# Upgrades, restarts and kills the daemon under load: one client downloads from an app, one counts the ticks of a second app,
# and two clients (quick: one) launch and terminate apps in a loop.
loads="load1 load2"
[ ! -e quick ] || loads=load1
mkdir -p /srv/web
size=100M
[ ! -e quick ] || size=60M
head -c $size /dev/urandom >/srv/web/film
printf '%s\n' '[App]' 'ExecStart=/bin/busybox httpd -f -p 8080 -h /srv/web' User=nobody >$apps/web.app
printf '%s\n' '[App]' Type=notify 'ExecStart=/root/vm-test/ticker.py 8081' >$apps/ticker.app
# The processor is emulated, beside other work, and an app that is launched at the moment of the upgrade waits for it.
for app in $loads; do
    manifest $app "ready"
    printf '%s\n' '[Lifecycle]' LaunchDeadlineSec=1min >>$apps/$app.app
done
manifest resident "ready"
# An app whose main process is not the process that was launched (MAINPID=).
manifest mover "orphan ready"
# An app that the kernel ends with its parent.
printf '%s\n' '[App]' 'ExecStart=/usr/bin/setpriv --pdeathsig TERM /bin/sleep infinity' >$apps/tied.app
mkdir -p /etc/greenroom/greenroom.conf.d
printf '%s\n' '[Manager]' ForegroundLimit=2 >/etc/greenroom/greenroom.conf.d/test.conf
ctl reload >/dev/null
ctl launch resident --background >/dev/null
ctl launch mover --background >/dev/null
ctl launch tied --background >/dev/null
ctl launch web >/dev/null
check "the app with the ticks is launched" ctl launch ticker
check "the web server is active too" is web active
check "resident is suspended" wait_for 20 is resident suspended
wait_for 20 is mover suspended
pids() { for app in web ticker resident mover; do pid $app; done; }
check "the app that ends with its parent has asked for it" wait_for 20 eval 'same "$(cat /proc/"$(pid tied)"/comm)" sleep'
tied=$(pid tied)
before=$(pids) daemon=$(property greenroomd MainPID)

rm -f /run/vm-test/enough
echo "under load" >/run/vm-test/phase
wait_for 20 eval "busybox wget -q -O /dev/null http://127.0.0.1:8080/ ; [ \$? -le 1 ]"
python3 ./download.py 8080 /film 1500000 >/run/vm-test/download 2>&1 &
python3 ./ticker.py 8081 watch >/run/vm-test/ticks 2>&1 &
load() {
    while [ ! -e /run/vm-test/enough ]; do
        ctl launch "$1" --background || echo "$1: launch: status $?"
        ctl terminate "$1" || echo "$1: terminate: status $?"
    done >/run/vm-test/load-"$1" 2>&1
}
for app in $loads; do load $app & done
# Measures the clients under load before the upgrade.
check "apps are launched and terminated" wait_for 60 eval '[ "$(wc -l </run/vm-test/load-load1)" -gt 10 ]'

echo "upgrade" >/run/vm-test/phase
check "the next version installs" dpkg -i ./greenroom-next.deb
check "the next version is installed" has "$(dpkg-query -W greenroom)" next
check "the daemon has the same process ID and executes the new program" eval \
    "same \$(property greenroomd MainPID) $daemon && [ /proc/$daemon/exe -ef /usr/bin/greenroomd ]"
check "the daemon is active" systemctl is-active greenroomd
check "every app has the same process, and the suspended app is frozen" eval 'same "$(pids)" "$before" && frozen resident'
check "an app that ends with its parent has the same process" same "$(pid tied)" "$tied"
# Between the two daemons of the restart, the saved form gets what a later release would have saved.
mkdir -p /run/systemd/system/greenroomd.service.d
printf '%s\n' '[Service]' \
    "ExecStartPre=/bin/sh -c '/root/vm-test/add-fields.py /run/greenroom/logbook next >/run/vm-test/added'" \
    >/run/systemd/system/greenroomd.service.d/upgrade.conf
systemctl daemon-reload
echo "restart" >/run/vm-test/phase
check "systemctl restart succeeds" systemctl restart greenroomd
check "the daemon has another process ID" fails same "$(property greenroomd MainPID)" "$daemon"
check "every app has the same process and state after the restart" eval 'same "$(pids)" "$before" && is web active && frozen resident'
# A field for each of the six or seven apps, its run and the record of the run.
check "the saved form had fields that the version does not know" test "$(cat /run/vm-test/added)" -gt 20
check "no event of the previous daemon is lost" fails has "$(journal_of -u greenroomd)" "cannot replay"
rm /run/systemd/system/greenroomd.service.d/upgrade.conf
systemctl daemon-reload
if [ ! -e quick ]; then
    echo "downgrade" >/run/vm-test/phase
    check "the previous version installs" dpkg -i ./greenroom.deb
    check "the previous version is installed" fails has "$(dpkg-query -W greenroom)" next
    check "every app has the same process and state after the downgrade" eval \
        'same "$(pids)" "$before" && is web active && frozen resident'
    echo "second upgrade" >/run/vm-test/phase
    check "the next version installs again" dpkg -i ./greenroom-next.deb
    check "every app has the same process and state after the second upgrade" eval \
        'same "$(pids)" "$before" && is web active && frozen resident'
fi
echo "kill -9" >/run/vm-test/phase
runs=$(property greenroomd NRestarts)
kill -KILL "$(property greenroomd MainPID)"
check "every app has the same process and state after SIGKILL" wait_for 30 eval \
    '[ "$(property greenroomd NRestarts)" -gt "$runs" ] && same "$(pids)" "$before" && is web active && frozen resident'
echo "under load" >/run/vm-test/phase
touch /run/vm-test/enough
wait

read -r count digest longest </run/vm-test/download
check "the download is complete and correct" same "$count $digest" \
    "$(stat -c %s /srv/web/film) $(sha256sum </srv/web/film | cut -d' ' -f1)"
echo "     longest time between two reads: $longest ms"
check "no tick is missing" has "$(cat /run/vm-test/ticks)" "0 missing"
echo "     longest time between two ticks (sent every 10 ms): $(cut -d';' -f2 /run/vm-test/ticks)"
check "no request was lost or failed" \
    same "$(grep -hvE ': (background|suspended)$|[Tt]erminated on request' /run/vm-test/load-load*)" ""
for app in $loads; do
    launches=$(ctl --json status $app | grep -o '"launches": *[0-9]*' | grep -o '[0-9]*')
    receipts=$(ctl --json receipts $app | grep -o '"id":' | wc -l)
    # What is ended before its program is executed has a receipt, but was no launch (L9).
    early=$(ctl --json receipts $app | grep -o '"state":"launching"' | wc -l)
    echo "     $app: $launches launches, $receipts receipts, $early of them before the program was executed"
    check "$app: each of its $launches launches has a receipt" \
        test $((receipts - early)) -le "$launches" -a "$launches" -le "$receipts"
done
check "the app with another main process is still suspended" eval "is mover suspended && frozen mover"
for app in web ticker resident mover tied; do ctl terminate $app >/dev/null 2>&1; done
rm -rf $apps/{load1,load2,resident,mover,web,ticker,tied}.app /srv/web /etc/greenroom/greenroom.conf.d
ctl reload >/dev/null
