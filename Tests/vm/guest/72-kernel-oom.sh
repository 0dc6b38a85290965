# The kernel's OOM killer and the memory controller: the order of the kernel is that of jetsam, and MemoryMax= is a hard limit.
value() { cat "$group/$1".run*/"$2"; }
score() { cat "/proc/$(pid "$1")/oom_score_adj"; }
oom_group() { [ "$(cat "$group/$1".run*/memory.oom.group)" = 1 ]; }
oomd_omit() { python3 -c 'import os, sys; print(os.getxattr(sys.argv[1], "user.oomd_omit"))' "$group/$1".run*; }
protected() { [ "$(value "$1" memory.low)" -gt "$2" ] || { value "$1" memory.low; return 1; }; }
manifest small "allocate 60000000 ready"
manifest large "allocate 230000000 ready"
manifest limited "allocate 200000000 ready"
for app in small large limited; do printf '%s\n' '[Lifecycle]' LaunchDeadlineSec=120s >>$apps/$app.app; done
printf '%s\n' '[Memory]' MemoryMax=64M >>$apps/limited.app
# Active: it allocates when the file exists, as fast as it can.
cat >$apps/front.app <<'END'
[App]
ExecStart=/usr/bin/python3 -c 'import os, time\nwhile not os.path.exists("/run/fill"): time.sleep(0.1)\nb = b"x" * int(open("/run/fill").read())\nopen("/run/filled", "w").close()\ntime.sleep(10000)'
END
rm -f /run/fill /run/filled
ctl reload >/dev/null
for app in large small; do
    ctl launch $app --background >/dev/null
    check "$app is suspended" wait_for 30 is $app suspended
done
ctl launch front >/dev/null
check "front is active" is front active
check "the kernel kills all processes of an app at once" oom_group large
check "systemd-oomd selects no app" same "$(oomd_omit large)" "b'1'"
check "the kernel's order follows the state" same "$(score front) $(score small) $(score large)" "0 975 975"
check "the daemon comes last" same "$(cat /proc/$(property greenroomd MainPID)/oom_score_adj)" -900
check "memory of the app in the foreground is protected" wait_for 15 protected front 1000000
check "memory of all apps is protected as much" same "$(value front memory.low)" "$(cat $group/memory.low)"
check "memory of a suspended app is not" same "$(value large memory.low)" 0

# MemoryMax=
ctl launch limited --background >/dev/null 2>&1
check "an app that exceeds MemoryMax= is killed" wait_for 60 receipt limited '"jetsam"' 'MemoryMax='
check "MemoryMax= has no effect on others" is large suspended

# The daemon does not run while memory becomes short: all apps together reach a limit, as in a container. Without the watchdog, or
# systemd would restart the daemon.
mkdir -p /run/systemd/system/greenroomd.service.d
printf '%s\n' '[Service]' WatchdogSec=0 >/run/systemd/system/greenroomd.service.d/test.conf
systemctl daemon-reload
systemctl restart greenroomd
check "front is still active" wait_for 20 is front active
dmesg -C
daemon=$(property greenroomd MainPID)
kill -STOP "$daemon"
used=$(cat $group/memory.current)
echo "     the apps use $((used / 1000000)) MB"
systemctl set-property --runtime greenroom-apps.service MemoryMax=$((used + 60000000))
# More than the small app would give back.
echo 200000000 >/run/fill
check "the app in the foreground gets its memory" wait_for 120 test -e /run/filled
systemctl set-property --runtime greenroom-apps.service MemoryMax=infinity
kill -CONT "$daemon"
dmesg | grep -i 'killed process' | sed 's/^/     /'
check "the kernel's OOM killer has killed" has "$(dmesg)" "Killed process"
check "the app in the foreground is still active" is front active
check "the largest suspended app was killed" wait_for 30 receipt large '"jetsam"' 'Killed by the kernel because memory was short.' '"suspended"'
check "greenroom-apps.service is active" systemctl is-active greenroom-apps
for app in front small; do ctl terminate $app >/dev/null 2>&1; done
rm -rf /run/systemd/system/greenroomd.service.d /run/fill /run/filled
systemctl daemon-reload
systemctl restart greenroomd
rm -f $apps/{small,large,limited,front}.app
ctl reload >/dev/null
