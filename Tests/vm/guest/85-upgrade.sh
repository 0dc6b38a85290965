# An upgrade under load: apps are launched and sent to the background while dpkg works.
for app in load1 load2; do manifest $app "ready"; done
manifest resident "ready"
ctl reload >/dev/null
ctl launch resident --background >/dev/null
check "one is suspended" wait_for 20 is resident suspended
resident=$(pid resident) daemon=$(property greenroomd MainPID)
(
    while [ ! -e /run/vm-test/enough ]; do
        for app in load1 load2; do ctl activate $app; done
    done >/run/vm-test/load 2>&1
) &
check "the next version installs over it" dpkg -i ./greenroom-next.deb
touch /run/vm-test/enough
wait
check "it is the next version" has "$(dpkg-query -W greenroom)" next
check "greenroomd is active" wait_for 30 systemctl is-active greenroomd
if there reexec; then
    check "the daemon has replaced itself: the same process, the new program" eval \
        "same \$(property greenroomd MainPID) $daemon && [ /proc/$daemon/exe -ef /usr/bin/greenroomd ]"
    check "no request was lost" refuse grep -qvE ': (active|inactive|.*wanted it)' /run/vm-test/load
else
    skip "the daemon replaces itself: not there yet"
    check "the daemon was left alone" same "$(property greenroomd MainPID)" "$daemon"
fi
check "the suspended app is the same" eval "same \$(pid resident) $resident && is resident suspended"
check "a restart ends all apps in order, and starts anew" systemctl restart greenroomd
check "the new program runs" test "/proc/$(property greenroomd MainPID)/exe" -ef /usr/bin/greenroomd
check "the app was ended by it, with a receipt" receipt resident suspended
rm -f $apps/{load1,load2,resident}.app
ctl reload >/dev/null
