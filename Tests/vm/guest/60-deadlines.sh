# Late is late, with systemd's PID 1 as with any other.
manifest hangs ""
manifest deaf "background=ignore ready"
manifest leaks "background=task:sync ready"
manifest stubborn "term=ignore ready"
for app in leaks; do printf '%s\n' '[Lifecycle]' BackgroundTimeSec=6s ExpirationNoticeSec=2s >>$apps/$app.app; done
ctl reload >/dev/null

for app in deaf leaks stubborn; do ctl launch $app >/dev/null; done
check "deaf made room, leaks did, stubborn is active" is stubborn active
began=$SECONDS
ctl terminate stubborn >/dev/null &
output=$(ctl launch hangs 2>&1)
took=$((SECONDS - began))
check "whoever waited for one that hangs is told" has "$output" "ended while launching"
check "after 5 s and not much more (it took $took s)" test $took -ge 4 -a $took -le 15
wait
check "a launch that hangs: 0x8badf00d" receipt hangs 0x8badf00d launch
check "no answer to the background: 0x8badf00d" wait_for 20 receipt deaf 0x8badf00d background
check "a task that is never ended: 0x2182bad2, by name" wait_for 20 receipt leaks 0x2182bad2 sync
check "one that does not end when it is told to: killed" wait_for 20 receipt stubborn 0x8badf00d
check "nothing is left of any of them" wait_for 10 same "$(ls -d $group/*.run* 2>/dev/null)" ""
