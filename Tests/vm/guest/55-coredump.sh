# Compares the receipt of a crash with the entry of systemd-coredump.
cd /root/vm-test || exit 1
if ! dpkg -i ./systemd-coredump_*.deb >/dev/null 2>&1; then
    skip "crashes: systemd-coredump cannot be installed"
    exit 0
fi
sysctl -q -p /usr/lib/sysctl.d/50-coredump.conf
manifest crashes "crash" User=user LimitCORE=infinity
# To write the dump can take longer than 5s on an emulated processor.
printf '%s\n' '[Lifecycle]' LaunchDeadlineSec=60s >>$apps/crashes.app
ctl reload >/dev/null
check "greenroomctl launch reports the crash" has "$(ctl launch crashes 2>&1)" "SIGSEGV"
check "the receipt has the signal and the core dump" receipt crashes '"signal":11' '"coreDumped":true'
pid=$(ctl --json receipts -n 1 crashes | grep -o '"pid": *[0-9]*' | grep -o '[0-9]*')
dump() { journalctl -b MESSAGE_ID=fc2e22bc6ee647b6b90729ab34a250b1 COREDUMP_PID="$pid" -o json; }
check "coredumpctl has a dump of the same process" wait_for 30 coredumpctl info "$pid"
coredumpctl info "$pid" --no-pager | grep -E '^ *(PID|UID|Signal|Timestamp|Command Line|Control Group|Unit|Storage)' | sed 's/^/     /'
ctl receipt "$(ctl --json receipts -n 1 crashes | grep -o '"id": *[0-9]*' | grep -o '[0-9]*')" | sed 's/^/     /'
check "the dump has the same signal" has "$(dump)" '"COREDUMP_SIGNAL":"11"'
check "the dump has the same user" has "$(dump)" '"COREDUMP_UID":"1000"'
check "the dump has the cgroup of the app" has "$(dump)" 'greenroom-apps.service/greenroom/crashes.run'
rm $apps/crashes.app
ctl reload >/dev/null
