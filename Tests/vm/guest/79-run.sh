# Commands of greenroomctl run under the installed daemon (L54).
cat >/root/echo-server.py <<'END'
import sys
for line in sys.stdin:
    print(line.strip().upper(), flush=True)
END
mkfifo /run/to-server /run/from-server
greenroomctl run -p IdleSec=1s --name echo -- python3 /root/echo-server.py </run/to-server >/run/from-server 2>/run/run-errors &
relay=$!
exec 7>/run/to-server 8</run/from-server
say() { echo "$1" >&7; read -r -t 30 answer <&8 && same "$answer" "$2"; }
check "a command answers over its standard streams" say hello HELLO
check "it is an app" wait_for 30 is run@echo suspended
check "its group is frozen" frozen run@echo
check "a line wakes it, and it answers" say again AGAIN
check "it is suspended again" wait_for 30 is run@echo suspended
server=$(pid run@echo)
systemctl kill -s KILL greenroomd
check "a line is answered while there is no daemon, or a new one" say third THIRD
check "the daemon is active again" wait_for 60 systemctl is-active greenroomd
check "it has taken the command over" wait_for 60 is run@echo suspended
check "it is the same process" same "$(pid run@echo)" "$server"
exec 7>&- 8<&-
check "the command ends with its input" wait_for 30 fails test -e /proc/"$server"
wait $relay
check "its exit status is passed on" same $? 0
check "nothing was said" same "$(cat /run/run-errors)" ""
greenroomctl run -- sh -c 'exit 7'
check "that of another one, too" same $? 7
greenroomctl run -- sh -c 'setsid sh -c "trap : TERM; while :; do sleep 1; done" & sleep 100000' &
wait_for 30 is run@sh background || wait_for 30 is run@sh suspended
child=$(pid run@sh)
kill -KILL $!
check "a command whose caller is killed ends" wait_for 60 fails test -e /proc/"$child"
check "and leaves no process, also of those that ignore SIGTERM" wait_for 60 fails pgrep -f 'trap : TERM'
check "and no app" wait_for 30 eval '! ctl list | grep -q run@sh'
rm -f /run/to-server /run/from-server /run/run-errors /root/echo-server.py
