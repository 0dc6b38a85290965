# Input wakes suspended servers of several users (L50), in other namespaces too; what cannot be watched is shown.
install -m 755 server.py /usr/local/bin/vm-server
# A program that its user may not read is not dumpable, so its /proc/PID/fd belongs to root (proc(5)).
install -m 711 "$(readlink -f /usr/bin/python3)" /usr/local/bin/vm-python
id other >/dev/null 2>&1 || useradd -m other
names=(tcp-user tcp-other unix-user unix-other hidden changed in-user-ns in-net-ns)
server tcp-user '/usr/local/bin/vm-server 7001' User=user
server tcp-other '/usr/local/bin/vm-server 7002' User=other
server unix-user '/usr/local/bin/vm-server /run/unix-user/socket' User=user RuntimeDirectory=unix-user
server unix-other '/usr/local/bin/vm-server /run/unix-other/socket' User=other RuntimeDirectory=unix-other
server hidden '/usr/local/bin/vm-python /usr/local/bin/vm-server 7003' User=user
server changed '/usr/local/bin/vm-server 7004 other' User=root
server in-user-ns '/usr/bin/unshare --user --map-root-user -- /usr/local/bin/vm-server 7005' User=other
server in-net-ns "/usr/bin/unshare --user --map-root-user --net -- /bin/sh -c 'ip link set lo up; exec /usr/local/bin/vm-server 7006'" \
    User=user
declare -A address=([tcp-user]=7001 [tcp-other]=7002 [unix-user]=/run/unix-user/socket [unix-other]=/run/unix-other/socket
    [hidden]=7003 [changed]=7004 [in-user-ns]=7005 [in-net-ns]=7006 [in-own-net]=7007)
ctl reload >/dev/null
for app in "${names[@]}"; do ctl launch $app >/dev/null; done
for app in "${names[@]}"; do check "$app is suspended" wait_for 60 eval "is $app suspended && frozen $app"; done
ctl idle | sed 's/^/     /'
declare -A main
for app in "${names[@]}"; do main[$app]=$(pid $app); done

# inside APP COMMAND…: executes the command in the network namespace of the app.
inside() {
    local net=/proc/${main[$1]}/ns/net
    shift
    nsenter --net="$net" -- "$@"
}
answers_inside() { same "$(inside "$1" ./client.py ask "${address[$1]}")" "hello ${main[$1]} 1"; }
check "hidden is not dumpable" same "$(stat -c %U /proc/"$(pid hidden)"/environ)" root
check "changed runs as another user than the one that launched it, and is not dumpable" eval \
    'runs_as "$(pid changed)" "$(id -u other)" && same "$(stat -c %U /proc/"$(pid changed)"/environ)" root'
other_ns() { ! same "$(readlink /proc/"$(pid "$1")"/ns/"$2")" "$(readlink /proc/self/ns/"$2")" >/dev/null; }
check "in-user-ns has a user namespace of its own" other_ns in-user-ns user
check "in-net-ns has a network namespace of its own" other_ns in-net-ns net

for app in "${names[@]}"; do
    check "idle says that input wakes $app, and nothing that cannot be watched" eval \
        "why=\$(why $app); has \"\$why\" 'Input wakes it' && ! has \"\$why\" 'Cannot watch' >/dev/null"
    check "$app answers while it is suspended" answers_inside $app
    check "a connection woke $app" woken $app "a connection"
done
for app in "${names[@]}"; do check "$app is suspended again" wait_for 60 eval "is $app suspended && frozen $app"; done
ctl status tcp-user unix-other | grep -E 'Suspended|Traffic' | sed 's/^/     /'

# A connection that exists wakes too, also in another network namespace.
exec 5<>/dev/tcp/127.0.0.1/7002
line() { echo "$1" >&5 && read -t 60 -r answer <&5 && same "$answer" "$1 $(pid tcp-other) $2"; }
check "a connection is answered" line one 1
check "tcp-other is suspended with a connection" wait_for 30 is tcp-other suspended
check "data on the connection wakes it" line two 2
check "status says so" last_input tcp-other stream
exec 5>&-
rm -f /run/vm-test/{first,second,third}
inside in-net-ns bash -c 'exec 5<>/dev/tcp/127.0.0.1/7006; echo one >&5; read -r answer <&5
    echo "$answer" >/run/vm-test/first
    until [ -e /run/vm-test/second ]; do sleep 0.2; done; echo two >&5; read -r answer <&5; echo "$answer" >/run/vm-test/third' &
wait_for 30 test -s /run/vm-test/first
check "the app is suspended with a connection in another network namespace" wait_for 60 is in-net-ns suspended
touch /run/vm-test/second
wait
check "data on that connection wakes it" same "$(cat /run/vm-test/third)" "two $(pid in-net-ns) 2"
check "status says so" last_input in-net-ns stream

# A namespace as PrivateNetwork= makes it, without a user namespace: it needs CAP_SYS_ADMIN. The restart keeps all apps.
drop_in() {
    mkdir -p /run/systemd/system/greenroomd.service.d
    printf '%s\n' '[Service]' "$@" >/run/systemd/system/greenroomd.service.d/traffic.conf
    systemctl daemon-reload
    systemctl restart greenroomd
}
pids() { for app in "${names[@]}"; do pid "$app"; done; }
before=$(pids)
ip netns add vm
ip link add vm0 type veth peer name vm1 netns vm
ip addr add 192.0.2.1/24 dev vm0
ip link set vm0 up
ip -n vm addr add 192.0.2.2/24 dev vm1
ip -n vm link set vm1 up
drop_in CapabilityBoundingSet=CAP_SYS_ADMIN
check "every app has the same process after a restart of the daemon" same "$(pids)" "$before"
for app in "${names[@]}"; do check "$app is suspended after the restart" wait_for 60 eval "is $app suspended && frozen $app"; done
for app in "${names[@]}"; do
    check "$app answers while it is suspended" answers_inside $app
done
enter='/usr/bin/nsenter --net=/run/netns/vm -- /usr/bin/setpriv --reuid other --regid other --clear-groups'
server in-own-net "$enter /usr/local/bin/vm-server 7007" User=root
ctl reload >/dev/null
ctl launch in-own-net >/dev/null
check "in-own-net is suspended" wait_for 60 eval "is in-own-net suspended && frozen in-own-net"
check "it has a network namespace of its own, and another user" eval \
    'other_ns in-own-net net && runs_as "$(pid in-own-net)" "$(id -u other)"'
far() { exec 5<>/dev/tcp/192.0.2.2/7007; echo far >&5; timeout 60 head -n 1 <&5; exec 5>&-; }
check "it answers a request from outside its namespace" eval 'same "$(far)" "far $(pid in-own-net) 1"'
check "a connection woke it" woken in-own-net "a connection"

# With 2, Yama asks for CAP_SYS_PTRACE, which the service has.
if [ -e /proc/sys/kernel/yama/ptrace_scope ]; then
    scope=$(cat /proc/sys/kernel/yama/ptrace_scope)
    echo 2 >/proc/sys/kernel/yama/ptrace_scope
    wait_for 60 is tcp-user suspended
    for _ in 1 2; do
        check "with ptrace_scope=2 the service wakes suspended apps" answers tcp-user 7001
        check "tcp-user is suspended, not left awake" wait_for 30 eval "is tcp-user suspended && frozen tcp-user"
    done
    echo "$scope" >/proc/sys/kernel/yama/ptrace_scope
else
    skip "Yama: this kernel does not have it"
fi

# Without CAP_SYS_PTRACE only apps of root that have no other capabilities than the daemon can be watched. The others stay awake
# and say so.
drop_in 'CapabilityBoundingSet=~CAP_SYS_PTRACE'
check "every app has the same process after the restart" same "$(pids)" "$before"
for app in "${names[@]}"; do
    check "$app cannot be watched: it is thawed, and idle says why" wait_for 30 eval \
        "is $app background && ! frozen $app && why=\$(why $app) &&
        has \"\$why\" 'descriptors cannot be watched' && has \"\$why\" 'operation not permitted'"
    check "$app answers" answers_inside $app
done
check "the journal says what cannot be watched" has "$(journalctl -b -o cat GREENROOM_APP=tcp-other)" \
    "operation not permitted; input there does not wake the app"
server tcp-root '/usr/local/bin/vm-server 7008' User=root
ctl reload >/dev/null
ctl launch tcp-root >/dev/null
check "root's app is suspended" wait_for 30 eval "is tcp-root suspended && frozen tcp-root"
check "root's app answers" answers tcp-root 7008
ctl idle | sed 's/^/     /'
rm /run/systemd/system/greenroomd.service.d/traffic.conf
systemctl daemon-reload
systemctl restart greenroomd
check "every app has the same process after the last restart" same "$(pids)" "$before"
for app in "${names[@]}"; do
    check "a daemon that may watch $app suspends it again" wait_for 60 eval "is $app suspended && frozen $app"
    check "$app answers while it is suspended" answers_inside $app
done
ctl terminate tcp-user >/dev/null
ctl launch tcp-user >/dev/null
check "a new process is watched, too" wait_for 60 is tcp-user suspended
check "it answers while it is suspended" answers tcp-user 7001
for app in "${names[@]}" in-own-net tcp-root; do
    ctl terminate $app >/dev/null
    rm $apps/$app.app
done
ctl reload >/dev/null
ip link del vm0
ip netns del vm
