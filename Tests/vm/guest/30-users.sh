# Runs apps as different users, and a daemon of a user.
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
check "of-user does not have root's groups" \
    same "$(awk '/^Groups:/ { $1 = ""; print $0 }' /proc/"$(pid of-user)"/status | tr -d ' ')" 1000
check "of-user's state directory belongs to its user" same "$(stat -c %U /var/lib/of-user)" user
check "of-user is suspended" wait_for 60 is of-user suspended
check "a suspended app has the OOM score adjustment 975" same "$(cat /proc/"$(pid of-user)"/oom_score_adj)" 975
check "of-nobody is suspended" wait_for 60 is of-nobody suspended
check "OOMScoreAdjust= is added, up to 1000" same "$(cat /proc/"$(pid of-nobody)"/oom_score_adj)" 1000
ctl activate of-nobody >/dev/null
check "OOMScoreAdjust= is the OOM score adjustment in the foreground" \
    wait_for 10 eval 'same "$(cat /proc/"$(pid of-nobody)"/oom_score_adj)" 200'
ctl background of-nobody >/dev/null
check "NoNewPrivileges= is applied" grep -q '^NoNewPrivs:.1' /proc/"$(pid of-nobody)"/status
check "an app has its own cgroup in greenroom-apps.service" \
    has "$(cat /proc/"$(pid plain)"/cgroup)" "/greenroom.slice/greenroom-apps.service/greenroom/plain.run"
for app in of-root of-user of-nobody plain; do
    check "$app is suspended" wait_for 20 is $app suspended
    check "the cgroup of $app is frozen" frozen $app
done
check "of-nobody's child processes are in its cgroup" same "$(cat $group/of-nobody.run*/cgroup.procs | wc -l)" 3
check "the cgroup of an app in the background has cpu.idle" same "$(cat $group/plain.run*/cpu.idle)" 1
check "an app is activated again" ctl activate of-user
check "of-user is not frozen" fails frozen of-user
check "of-user does not have cpu.idle" same "$(cat $group/of-user.run*/cpu.idle)" 0
# Checks that the unit's hardening does not restrict ordinary programs.
cat >/usr/local/bin/probe <<'END'
#!/bin/bash
for device in /dev/fuse /dev/kvm /dev/rtc0 /dev/vda; do
    [ ! -e $device ] || { : <$device; } 2>/dev/null || echo "no $device"
done
file=$(mktemp) || echo "no /tmp"
[ -e ~/.bashrc ] || echo "no home"
# A user namespace of root needs CAP_SETFCAP to map root, and apps do not have it.
[ "$(id -u)" = 0 ] || unshare --user --map-root-user --mount mount -t tmpfs none /mnt || echo "no user namespaces"
ip -o link show lo >/dev/null || echo "no netlink"
python3 -c 'import mmap; mmap.mmap(-1, 4096, prot=7)' || echo "no executable memory"
chmod g+s $file || echo "no setgid"
hostname >/dev/null || echo "no host name"
[ "$(id -u)" = 0 ] || ! grep -q ' 0 .* keyring ' /proc/keys || echo "no keyring of its own: root's"
echo done
exec sleep 3600
END
chmod +x /usr/local/bin/probe
for user in root user; do printf '%s\n' '[App]' 'ExecStart=/usr/local/bin/probe' User=$user >$apps/probe-$user.app; done
ctl reload >/dev/null
for user in root user; do
    ctl launch probe-$user >/dev/null
    wait_for 30 eval "journalctl -b SYSLOG_IDENTIFIER=probe-$user -o cat | grep -qx done"
done
check "an app of root is not restricted" \
    same "$(journalctl -b SYSLOG_IDENTIFIER=probe-root -o cat | grep -E '^no ')" ""
check "an app of a user is not restricted, except for devices" \
    same "$(journalctl -b SYSLOG_IDENTIFIER=probe-user -o cat | grep -E '^no ' | grep -v '^no /dev/')" ""
for user in root user; do ctl terminate probe-$user >/dev/null; rm $apps/probe-$user.app; done

leaf=$(echo $group/of-nobody.run*)
check "an app is terminated" ctl terminate of-nobody
check "its cgroup is removed" wait_for 10 test ! -e "$leaf"

# A daemon of a user.
loginctl enable-linger user
check "the user has a session" wait_for 60 test -S /run/user/1000/bus
check "systemd-analyze verify accepts the user's units" \
    same "$(as_user systemd-analyze verify --user greenroomd.service 2>&1 | grep -v "Command 'man ")" ""
own=/home/user/.config/greenroom/apps
mkdir -p $own
printf '%s\n' '[App]' 'ExecStart=/usr/bin/sleep 3600' >$own/mine.app
chown -R user: /home/user/.config
check "the daemon of a user starts" as_user systemctl --user start greenroomd
check "it launches an app of the user" as_user greenroomctl launch mine --background
check "the app is suspended" wait_for 20 eval "as_user greenroomctl list | grep -q '^mine *suspended'"
mine=$(as_user greenroomctl list | awk '$1 == "mine" { print $3 }')
check "the app is in a frozen cgroup of the user" \
    grep -q '^frozen 1' "/sys/fs/cgroup$(cut -d: -f3 /proc/"$mine"/cgroup)/cgroup.events"
# A command from a login session: its control group is root's.
mkfifo /run/to-command /run/from-command
chown user /run/to-command /run/from-command
systemd-run --quiet --unit login-session -p PAMName=login -p User=user \
    sh -c 'cat /proc/self/cgroup >/home/user/session-group; exec greenroomctl run -p IdleSec=1s --name session -- cat </run/to-command >/run/from-command'
exec 7>/run/to-command 8</run/from-command
echo hello >&7
check "a command answers that was started in a login session" eval 'read -r -t 60 answer <&8 && same "$answer" hello'
check "the session is not below the user's service manager" \
    grep -q '^0::/user.slice/user-1000.slice/session-.*scope' /home/user/session-group
check "the daemon of the user suspends it" \
    wait_for 60 eval "as_user greenroomctl list | grep -q '^run@session *suspended'"
check "it was not executed directly" eval '! journalctl -b -u login-session -o cat | grep "executed directly"'
exec 7>&- 8<&-
check "its session ends with it" wait_for 60 eval '! systemctl is-active login-session'
rm -f /run/to-command /run/from-command /home/user/session-group
as_user journalctl --user -u greenroomd -o cat -n 3 | sed 's/^/     /'
check "the daemon of the user stops" as_user systemctl --user stop greenroomd
check "its app has ended" test ! -e "/proc/$mine"
check "no unit of the user failed" same "$(as_user systemctl --user list-units --failed --no-legend)" ""
loginctl disable-linger user
for app in of-root of-user plain; do ctl terminate $app >/dev/null; done
