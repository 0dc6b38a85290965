# Memory pressure: an app in the foreground needs the memory of the largest of three suspended apps.
manifest small "allocate 40000000 ready"
manifest large "allocate 230000000 ready"
manifest middle "allocate 90000000 ready"
manifest front "allocate 380000000 ready" 'Name=In the foreground'
# On an emulated processor an allocation can take longer than 5s.
for app in small large middle front; do printf '%s\n' '[Lifecycle]' LaunchDeadlineSec=60s >>$apps/$app.app; done
ctl reload >/dev/null
for app in large small middle; do ctl launch $app --background >/dev/null; done
for app in large small middle; do check "$app is suspended" wait_for 30 is $app suspended; done
ctl list | sed 's/^/     /'
check "the memory is charged to the cgroup of the app" test "$(cat $group/large.run*/memory.current)" -gt 230000000
echo "     $(available) MiB are available"
# The missing memory is slightly less than the size of the large app.
need=$(( $(available) - 40 + 110 ))
manifest front "allocate $((need * 1000000)) ready"
printf '%s\n' '[Lifecycle]' LaunchDeadlineSec=120s >>$apps/front.app
ctl reload >/dev/null
dmesg -C
began=$SECONDS
check "an app in the foreground that allocates $need MB is launched" ctl launch front
echo "     it took $((SECONDS - began)) s; $(available) MiB are available"
ctl receipts | sed 's/^/     /' | tail -n 5
check "the largest suspended app was killed by jetsam" receipt large jetsam suspended
check "the receipt lists the other candidates" receipt large '"candidates"' small middle
check "the app in the foreground is active" is front active
check "the small app is still suspended" is small suspended
check "the kernel's OOM killer killed no process" same "$(dmesg | grep -ci 'out of memory')" 0
check "systemd reports no OOM kill" same "$(property greenroom-apps Result)" success
check "the memory level returns to normal" wait_for 60 eval "ctl pressure | grep -qi normal"
check "the journal has an entry of the kill" wait_for 5 eval "journalctl -b GREENROOM_APP=large GREENROOM_NAMESPACE=jetsam -o cat | grep -q receipt"
for app in front small middle large; do ctl terminate $app >/dev/null 2>&1; done

# An app that takes more than the limit of all apps. Suspended apps are killed before it, by the daemon or by the kernel.
manifest bystander "ready"
printf '%s\n' '[App]' 'ExecStart=/usr/bin/tail /dev/zero' >$apps/hungry.app
ctl reload >/dev/null
ctl launch bystander --background >/dev/null
wait_for 20 is bystander suspended
# The memory limit of all apps together is a property of greenroom-apps.service.
systemctl set-property --runtime greenroom-apps.service MemoryMax=150M
ctl launch hungry >/dev/null 2>&1
check "an app that allocates memory without limit is killed" wait_for 60 receipt hungry '"signal"'
suspended_or_killed() { is bystander suspended || receipt bystander jetsam suspended; }
check "the other app is suspended, or was killed for memory before" suspended_or_killed
check "greenroom-apps.service is active" systemctl is-active greenroom-apps
systemctl set-property --runtime greenroom-apps.service MemoryMax=infinity
ctl terminate bystander >/dev/null 2>&1
rm -f $apps/{small,large,middle,front,hungry,bystander}.app
ctl reload >/dev/null
