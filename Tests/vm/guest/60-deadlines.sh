# Checks that apps are killed when they exceed their deadlines.
manifest hangs ""
manifest silent "background=ignore ready"
manifest leaks "background=task:sync ready"
manifest stubborn "term=ignore ready"
for app in leaks; do printf '%s\n' '[Lifecycle]' BackgroundTimeSec=6s ExpirationNoticeSec=2s >>$apps/$app.app; done
ctl reload >/dev/null

for app in silent leaks stubborn; do ctl launch $app >/dev/null; done
check "only the last app that was launched is active" is stubborn active
began=$SECONDS
ctl terminate stubborn >/dev/null &
output=$(ctl launch hangs 2>&1)
took=$((SECONDS - began))
check "greenroomctl launch reports that the app ended while launching" has "$output" "ended while launching"
check "it does so after about 5 s ($took s)" test $took -ge 4 -a $took -le 15
wait
check "an exceeded launch deadline has the code 0x8badf00d" receipt hangs 0x8badf00d launch
check "an exceeded background deadline has the code 0x8badf00d" wait_for 20 receipt silent 0x8badf00d background
check "an exceeded background time has the code 0x2182bad2 and the name of the task" wait_for 20 receipt leaks 0x2182bad2 sync
check "an exceeded terminate deadline has the code 0x8badf00d" wait_for 20 receipt stubborn 0x8badf00d
check "all cgroups are removed" wait_for 10 same "$(ls -d $group/*.run* 2>/dev/null)" ""
