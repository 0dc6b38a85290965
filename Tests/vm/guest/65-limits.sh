# Memory limits of cgroups: of the service of all apps, and of a scope around a daemon in the foreground, as in a container.
service=/greenroom.slice/greenroom-apps.service
killed() { awk '/^oom_kill / { print $2 }' "/sys/fs/cgroup$1/memory.events"; }
# Emulated processors are slow.
slow() {
    manifest "$@"
    printf '%s\n' '[Lifecycle]' LaunchDeadlineSec=120s >>"$apps/$1.app"
}
filler() {
    slow "$1" "unused"
    sed -i "s|^ExecStart=.*|ExecStart=/usr/bin/python3 /root/vm-test/filler.py $2 $3|" "$apps/$1.app"
}
slow large "allocate 120000000 ready"
slow small "allocate 20000000 ready"
filler front 180 4
ctl reload >/dev/null
for app in large small; do ctl launch $app --background >/dev/null; done
for app in large small; do check "$app is suspended" wait_for 30 is $app suspended; done
check "no limit is shown without one" fails eval "ctl pressure | grep -q memory.max"

# The limit is set while all apps are suspended; it is found at the next reading.
systemctl set-property --runtime greenroom-apps.service MemoryMax=256M
check "the daemon finds the limit of the service" has "$(ctl --json pressure)" "$service"
check "the limit is the source that decides" has "$(ctl pressure)" "memory.max of the cgroup $service"
check "the daemon watches the stalls of that group" has "$(ctl pressure)" "/sys/fs/cgroup$service/memory.pressure"
check "the journal has the limit" wait_for 5 eval "journalctl -b -u greenroomd -o cat | grep -q 'limited to 256.0M by memory.max'"
before=$(killed $service)
check "an app in the foreground is launched" ctl launch front
check "the largest suspended app is killed by jetsam" wait_for 60 receipt large jetsam suspended
check "the level was raised by the limit" eval "journalctl -b -u greenroomd -o cat | grep -q 'Memory level changed: critical'"
check "the small app is still suspended" is small suspended
check "the app in the foreground is active" is front active
check "the kernel's OOM killer killed no process of the service" same "$(killed $service)" "$before"
ctl pressure | sed 's/^/     /'
systemctl set-property --runtime greenroom-apps.service MemoryMax=infinity
check "the limit is gone" fails eval "ctl pressure | grep -q memory.max"
ctl terminate front >/dev/null

# All apps are suspended, so that the daemon reads nothing by itself; without PSI only memory.events make it look.
ctl launch large --background >/dev/null
check "the large app is suspended again" wait_for 30 is large suspended
mkdir -p /etc/greenroom/greenroom.conf.d
printf '%s\n' '[Memory]' WarningPressure=off CriticalPressure=off >/etc/greenroom/greenroom.conf.d/limits.conf
systemctl set-property --runtime greenroom-apps.service MemoryHigh=224M
ctl reload >/dev/null
count=$(ctl --json receipts large | grep -o '"jetsam"' | wc -l)
sh -c "echo \$\$ >/sys/fs/cgroup$service/supervisor/cgroup.procs; exec python3 /root/vm-test/filler.py 110 4" &
filler=$!
killed_again() { [ "$(ctl --json receipts large | grep -o '"jetsam"' | wc -l)" -gt "$count" ]; }
check "memory.high is reached, and the largest suspended app is killed by jetsam" wait_for 60 killed_again
kill $filler
systemctl set-property --runtime greenroom-apps.service MemoryHigh=infinity
rm -r /etc/greenroom/greenroom.conf.d
for app in front large small; do ctl terminate $app >/dev/null 2>&1; done
rm -f $apps/{front,large,small}.app
ctl reload >/dev/null

# A daemon in a scope with a limit: its apps are in a cgroup below the scope.
box=/run/vm-test/box
mkdir -p $box/config/apps
apps=$box/config/apps
slow large "allocate 90000000 ready"
filler front 160 4
systemd-run --quiet --scope --unit box -p MemoryMax=224M -p Delegate=yes \
    greenroomd --system --config $box/config --runtime $box/run --state $box/state >$box/log 2>&1 &
box() { ctl --runtime $box/run "$@"; }
in_box() { box list | grep -qE "^$1 +$2"; }
check "a daemon in a scope answers" wait_for 30 box list
check "it finds the limit of the scope" has "$(box pressure)" "memory.max of the cgroup /system.slice/box.scope"
box launch large --background >/dev/null
check "an app is suspended" wait_for 30 in_box large suspended
check "an app in the foreground is launched" box launch front
check "the suspended app is killed by jetsam" wait_for 60 eval "box receipts | grep large | grep -qi 'suspended'"
check "the app in the foreground is active" in_box front active
check "the kernel's OOM killer killed no process of the scope" same "$(killed /system.slice/box.scope)" 0
box pressure | sed 's/^/     /'
systemctl stop box.scope
sed 's/^/     | /' $box/log | tail -n 5
