# Apps as different users, each in its own cgroup.
manifest of-root "print x ready"
manifest of-user "ready" User=user StateDirectory=of-user
manifest of-nobody "fork 2 ready" User=nobody NoNewPrivileges=yes OOMScoreAdjust=200
printf '%s\n' '[App]' 'ExecStart=/usr/bin/sleep 3600' User=user >$apps/plain.app
ctl reload >/dev/null

for app in of-root of-user of-nobody plain; do
    check "$app is launched" ctl launch $app --background
done
check "of-root runs as root" runs_as "$(pid of-root)" 0
check "of-user runs as user" runs_as "$(pid of-user)" 1000
check "of-nobody runs as nobody" runs_as "$(pid of-nobody)" 65534
check "of-user has none of root's groups" \
    same "$(awk '/^Groups:/ { $1 = ""; print $0 }' /proc/"$(pid of-user)"/status | tr -d ' ')" 1000
check "of-user's state folder is its user's" same "$(stat -c %U /var/lib/of-user)" user
check "an app is no more protected from the OOM killer than any program" \
    same "$(cat /proc/"$(pid of-user)"/oom_score_adj)" 0
check "unless its manifest says so" same "$(cat /proc/"$(pid of-nobody)"/oom_score_adj)" 200
check "NoNewPrivileges= holds" grep -q '^NoNewPrivs:.1' /proc/"$(pid of-nobody)"/status
check "each has a cgroup of its own in greenroom-apps.service" \
    has "$(cat /proc/"$(pid plain)"/cgroup)" "/greenroom.slice/greenroom-apps.service/greenroom/plain.run"
for app in of-root of-user of-nobody plain; do
    check "$app is suspended" wait_for 20 is $app suspended
    check "$app is frozen, all of its processes" frozen $app
done
check "of-nobody's children are in its cgroup" same "$(cat $group/of-nobody.run*/cgroup.procs | wc -l)" 3
check "in the background an app's cgroup is idle" same "$(cat $group/plain.run*/cpu.idle)" 1
check "an app is activated again" ctl activate of-user
check "and is not frozen" refuse frozen of-user
check "nor idle" same "$(cat $group/of-user.run*/cpu.idle)" 0
# What an ordinary program may notice of the unit's hardening: nothing.
cat >/usr/local/bin/curious <<'END'
#!/bin/bash
for device in /dev/fuse /dev/kvm /dev/rtc0 /dev/vda; do
    [ ! -e $device ] || { : <$device; } 2>/dev/null || echo "no $device"
done
file=$(mktemp) || echo "no /tmp"
[ -e ~/.bashrc ] || echo "no home"
# The kernel lets root's user namespaces have root in them only with CAP_SETFCAP, which stays with the machine's administrator.
[ "$(id -u)" = 0 ] || unshare --user --map-root-user --mount mount -t tmpfs none /mnt || echo "no user namespaces"
ip -o link show lo >/dev/null || echo "no netlink"
python3 -c 'import mmap; mmap.mmap(-1, 4096, prot=7)' || echo "no memory that can be executed"
chmod g+s $file || echo "no setgid"
hostname >/dev/null || echo "no host name"
[ "$(id -u)" = 0 ] || ! grep -q ' 0 .* keyring ' /proc/keys || echo "no keyring of its own: root's"
echo done
exec sleep 3600
END
chmod +x /usr/local/bin/curious
for user in root user; do printf '%s\n' '[App]' 'ExecStart=/usr/local/bin/curious' User=$user >$apps/curious-$user.app; done
ctl reload >/dev/null
for user in root user; do
    ctl launch curious-$user >/dev/null
    wait_for 30 eval "journalctl -b SYSLOG_IDENTIFIER=curious-$user -o cat | grep -qx done"
done
check "root's apps have all devices, namespaces and files that they expect" \
    same "$(journalctl -b SYSLOG_IDENTIFIER=curious-root -o cat | grep -E '^no ')" ""
check "a user's, too, but for what users may not" \
    same "$(journalctl -b SYSLOG_IDENTIFIER=curious-user -o cat | grep -E '^no ' | grep -v '^no /dev/')" ""
for user in root user; do ctl terminate curious-$user >/dev/null; rm $apps/curious-$user.app; done

leaf=$(echo $group/of-nobody.run*)
check "an app is terminated" ctl terminate of-nobody
check "its cgroup is gone" wait_for 10 test ! -e "$leaf"

# A user's own daemon.
loginctl enable-linger user
check "user has a session" wait_for 60 test -S /run/user/1000/bus
check "the user's units are as systemd wants them" \
    same "$(as_user systemd-analyze verify --user greenroomd.service 2>&1 | grep -v "Command 'man ")" ""
own=/home/user/.config/greenroom/apps
mkdir -p $own
printf '%s\n' '[App]' 'ExecStart=/usr/bin/sleep 3600' >$own/mine.app
chown -R user: /home/user/.config
check "a user's own daemon starts" as_user systemctl --user start greenroomd
check "and launches an app of that user" as_user greenroomctl launch mine --background
check "which is suspended" wait_for 20 eval "as_user greenroomctl list | grep -q '^mine *suspended'"
mine=$(as_user greenroomctl list | awk '$1 == "mine" { print $3 }')
check "in a frozen cgroup of the user's" \
    grep -q '^frozen 1' "/sys/fs/cgroup$(cut -d: -f3 /proc/"$mine"/cgroup)/cgroup.events"
as_user journalctl --user -u greenroomd -o cat -n 3 | sed 's/^/     /'
check "and ends when the daemon is stopped" as_user systemctl --user stop greenroomd
check "with its app" test ! -e "/proc/$mine"
check "and nothing failed" same "$(as_user systemctl --user list-units --failed --no-legend)" ""
loginctl disable-linger user
for app in of-root of-user plain; do ctl terminate $app >/dev/null; done
