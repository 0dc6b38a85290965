# The daemon of a user while Yama lets a process examine its descendants only (ptrace_scope=1, the default of Ubuntu). The apps of a
# daemon that was killed are no descendants of its successor, so input could not wake them: they are thawed and stay awake (L50).
scope=/proc/sys/kernel/yama/ptrace_scope
if [ ! -e $scope ]; then
    skip "Yama: this kernel does not have it"
    return 0
fi
install -m 755 server.py /usr/local/bin/vm-server
install -m 711 "$(readlink -f /usr/bin/python3)" /usr/local/bin/vm-python
loginctl enable-linger user
wait_for 60 test -S /run/user/1000/bus
before=$(cat $scope)
echo 1 >$scope
apps=/home/user/.config/greenroom/apps
settings=/run/user/1000/systemd/user/greenroomd.service.d
mkdir -p $apps
unit() { as_user systemctl --user "$@"; }
main_pid() { unit show greenroomd --property MainPID --value; }
ctl() { as_user timeout 60 greenroomctl "$@"; }
journal_of() { as_user journalctl --user -b -o cat "$@"; }
frozen() { grep -q '^frozen 1' "/sys/fs/cgroup$(cut -d: -f3 /proc/"$(pid "$1")"/cgroup)/cgroup.events"; }
asleep() { is "$1" suspended && frozen "$1"; }
names=(tcp unix family orphan)
addresses=(7001 /run/user/1000/vm-socket 7002 7003 7004)
server tcp '/usr/local/bin/vm-server 7001'
server unix '/usr/local/bin/vm-server /run/user/1000/vm-socket'
server family "/bin/sh -c '/usr/local/bin/vm-server 7002 & /usr/local/bin/vm-server 7003 & wait'"
# Its server has lost its parent, and is a child of the daemon (PR_SET_CHILD_SUBREAPER).
server orphan "/bin/sh -c '(/usr/local/bin/vm-server 7004 &); exec sleep infinity'"
server hidden '/usr/local/bin/vm-python /usr/local/bin/vm-server 7005'
chown -R user: /home/user/.config
check "the daemon of a user starts with ptrace_scope=1" unit start greenroomd
for app in "${names[@]}" hidden; do ctl launch $app >/dev/null; done
for app in "${names[@]}"; do check "$app is suspended" wait_for 60 asleep $app; done
for address in "${addresses[@]}"; do check "$address answers while its app is suspended" has "$(ask "$address")" hello; done
for app in "${names[@]}"; do check "a connection woke $app" woken $app "a connection"; done
for app in "${names[@]}"; do check "$app is suspended again" wait_for 60 asleep $app; done
check "a program that is not dumpable stays awake, and idle says why" wait_for 30 eval \
    'is hidden background && has_reason hidden unreadable && has "$(why hidden)" "cannot be read"'
check "it answers" answers hidden 7005
ctl idle | sed 's/^/     /'

pids() { for app in "${names[@]}"; do pid "$app"; done; }
processes=$(pids) daemon=$(main_pid)
check "the daemon executes its program again" ctl reexec
check "it is the same process" wait_for 30 eval 'ctl list && same "$(main_pid)" '"$daemon"
for app in "${names[@]}"; do check "$app is still suspended" wait_for 60 asleep $app; done
for address in "${addresses[@]}"; do check "$address answers while its app is suspended" has "$(ask "$address")" hello; done
for app in "${names[@]}"; do check "$app is suspended again" wait_for 60 asleep $app; done

# Requests that arrive while there is no daemon wait for the next one.
mkdir -p $settings
printf '%s\n' '[Unit]' StartLimitIntervalSec=0 '[Service]' RestartSec=4s >$settings/test.conf
unit daemon-reload
groups=$(for app in "${names[@]}"; do echo "/sys/fs/cgroup$(cut -d: -f3 /proc/"$(pid $app)"/cgroup)"; done)
all_frozen() { for folder in $groups; do grep -q '^frozen 1' "$folder/cgroup.events" || return 1; done; }
kill -KILL "$(main_pid)"
number=0
for address in "${addresses[@]}"; do
    number=$((number + 1))
    ask "$address" >/run/vm-test/answer-$number 2>&1 &
done
check "without a daemon, the apps stay frozen" all_frozen
check "systemd starts the next daemon" wait_for 60 ctl list
check "it is another process" fails same "$(main_pid)" "$daemon"
wait
for answer in 1 2 3 4 5; do
    check "a request that came without a daemon is answered (${addresses[answer - 1]})" has "$(cat /run/vm-test/answer-$answer)" hello
done
check "every app has the same process" same "$(pids)" "$processes"
for app in "${names[@]}"; do
    check "$app is thawed, stays awake, and status says why" wait_for 30 eval \
        "is $app background && ! frozen $app && has_reason $app notWatchable &&
        has \"\$(ctl status $app)\" 'descriptors cannot be watched: while it is suspended, no input would reach it' &&
        has \"\$(ctl status $app)\" 'operation not permitted'"
done
for address in "${addresses[@]}"; do check "$address answers" has "$(ask "$address")" hello; done
ctl status tcp | sed 's/^/     /'
as_user journalctl --user -u greenroomd -o cat -n 30 | grep -i 'watch' | tail -n 4 | sed 's/^/     /'
check "the journal says what cannot be watched" has "$(as_user journalctl --user -o cat GREENROOM_APP=tcp)" "operation not permitted"

every_woken() { for app in "${names[@]}"; do [ "$(wakes $app)" -gt 0 ] || return 1; done; }
# New processes are watched again. The daemon is killed under traffic.
for app in "${names[@]}"; do ctl terminate $app >/dev/null && ctl launch $app >/dev/null; done
for app in "${names[@]}"; do check "a new process of $app is suspended" wait_for 60 asleep $app; done
rm -f /run/vm-test/enough
timeout 300 ./client.py load 6 "${addresses[@]}" >/run/vm-test/load 2>&1 &
wait_for 60 every_woken
asleep=0
for app in "${names[@]}"; do ! frozen $app || asleep=$((asleep + 1)); done
kill -KILL "$(main_pid)"
check "the next daemon starts under traffic" wait_for 60 ctl list
for app in "${names[@]}"; do
    # One that was frozen is left awake; what another one waits for cannot be read.
    check "$app stays awake in the end" wait_for 60 eval \
        "is $app background && { has_reason $app notWatchable || has_reason $app unreadable; }"
done
touch /run/vm-test/enough
wait
read -r sent answered longest </run/vm-test/load
echo "     $asleep apps were frozen at the kill; $sent requests, the longest took $longest ms"
check "every request was answered" same "$answered$(sed 1d /run/vm-test/load)" "$sent"

# Without Yama the next daemon may examine them: it tries once for each app.
echo 0 >$scope
check "the daemon executes its program again without Yama" ctl reexec
check "it answers" wait_for 30 ctl list
for app in "${names[@]}"; do check "$app is suspended again" wait_for 60 asleep $app; done
for address in "${addresses[@]}"; do check "$address answers while its app is suspended" has "$(ask "$address")" hello; done
check "a program that is not dumpable is left awake again" wait_for 30 eval 'is hidden background && has_reason hidden unreadable'
echo 1 >$scope
check "the daemon of the user stops" unit stop greenroomd
check "no unit of the user failed" same "$(unit list-units --failed --no-legend)" ""
rm -r $settings $apps
unit daemon-reload
echo "$before" >$scope
loginctl disable-linger user
