# Real memory, real pressure: three idle apps, and one in the foreground that needs what the largest of them has.
manifest small "allocate 40000000 ready"
manifest large "allocate 230000000 ready"
manifest middle "allocate 90000000 ready"
manifest front "allocate 380000000 ready" 'Name=In front'
printf '%s\n' '[Lifecycle]' LaunchDeadlineSec=60s >>$apps/front.app
ctl reload >/dev/null
available() { awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo; }
for app in large small middle; do ctl launch $app --background >/dev/null; done
for app in large small middle; do check "$app is suspended" wait_for 30 is $app suspended; done
ctl list | sed 's/^/     /'
check "its size is its cgroup's" test "$(cat $group/large.run*/memory.current)" -gt 230000000
echo "     $(available) MiB are available"
# So that what is missing is just less than the large one, whatever this machine has.
need=$(( $(available) - 40 + 150 ))
manifest front "allocate $((need * 1000000)) ready"
printf '%s\n' '[Lifecycle]' LaunchDeadlineSec=120s >>$apps/front.app
ctl reload >/dev/null
dmesg -C
began=$SECONDS
check "one in front that needs $need MB is launched, however little was free" ctl launch front
echo "     it took $((SECONDS - began)) s; $(available) MiB are available"
ctl receipts | sed 's/^/     /' | tail -n 5
check "the largest suspended app was killed: jetsam" receipt large jetsam suspended
check "the receipt names who else could have been taken" receipt large '"candidates"' small middle
check "the one in front lives" is front active
check "the small one was spared" is small suspended
check "the kernel's OOM killer had nothing to do" same "$(dmesg | grep -ci 'out of memory')" 0
check "systemd has seen no OOM kill" same "$(property greenroom-apps Result)" success
check "memory is normal again, or will be" wait_for 60 eval "ctl pressure | grep -qi normal"
check "the journal has the kill" wait_for 5 eval "journalctl -b GREENROOM_APP=large GREENROOM_NAMESPACE=jetsam -o cat | grep -q receipt"
for app in front small middle large; do ctl terminate $app >/dev/null 2>&1; done

# One app that the kernel's OOM killer takes is that app's end alone.
manifest bystander "ready"
printf '%s\n' '[App]' 'ExecStart=/usr/bin/tail /dev/zero' >$apps/hungry.app
ctl reload >/dev/null
ctl launch bystander --background >/dev/null
wait_for 20 is bystander suspended
# The limit of all apps together is a drop-in for greenroom-apps.service, as for any service.
systemctl set-property --runtime greenroom-apps.service MemoryMax=150M
ctl launch hungry >/dev/null 2>&1
check "one that eats all there is comes to its end" wait_for 60 receipt hungry '"signal"'
check "the other lives" is bystander suspended
check "so does the group of all apps" systemctl is-active greenroom-apps
systemctl set-property --runtime greenroom-apps.service MemoryMax=infinity
ctl terminate bystander >/dev/null 2>&1
rm -f $apps/{small,large,middle,front,hungry,bystander}.app
ctl reload >/dev/null
