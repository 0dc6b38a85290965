# Kills the daemon at random times while thirty suspended servers of two users are under traffic: every request is answered (L50).
install -m 755 server.py /usr/local/bin/vm-server
id other >/dev/null 2>&1 || useradd -m other
names=() addresses=()
for number in {10..39}; do
    names+=(server$number)
    case $((number % 3)) in
    0) server server$number "/usr/local/bin/vm-server 71$number" User=user && addresses+=(71$number) ;;
    1) server server$number "/usr/local/bin/vm-server 71$number" User=other && addresses+=(71$number) ;;
    2)
        server server$number "/usr/local/bin/vm-server /run/server$number/socket" User=other RuntimeDirectory=server$number
        addresses+=(/run/server$number/socket)
        ;;
    esac
done
mkdir -p /run/systemd/system/greenroomd.service.d
printf '%s\n' '[Unit]' StartLimitIntervalSec=0 '[Service]' RestartSec=1s >/run/systemd/system/greenroomd.service.d/test.conf
systemctl daemon-reload
ctl reload >/dev/null
for app in "${names[@]}"; do ctl launch $app >/dev/null; done
suspended() { ctl list | grep -cE '^server[0-9]+ +suspended'; }
all_suspended() { [ "$(suspended)" = 30 ]; }
frozen_now() { grep -lx 'frozen 1' $group/server*.run*/cgroup.events | wc -l; }
check "30 servers are suspended" wait_for 120 all_suspended
pids() { ctl list | awk '/^server/ { print $1, $3 }'; }
before=$(pids)
rm -f /run/vm-test/enough
timeout 500 ./client.py load 20 "${addresses[@]}" >/run/vm-test/load 2>&1 &
many_frozen() { [ "$(frozen_now)" -ge 10 ]; }
most_kills=12
[ ! -e quick ] || most_kills=6
kills=0 asleep='' absences=''
while [ $kills -lt $most_kills ]; do
    # Every third daemon is killed while it recovers.
    if [ $((kills % 3)) != 2 ]; then
        wait_for 60 many_frozen
        sleep "0.$((RANDOM % 10))"
    fi
    daemon=$(property greenroomd MainPID)
    [ "$daemon" -gt 1 ] || continue
    asleep="$asleep $(frozen_now)"
    kill -KILL "$daemon" 2>/dev/null || continue
    kills=$((kills + 1)) began=$(date +%s%3N)
    [ $((kills % 3)) = 2 ] || { wait_for 60 ctl list && absences="$absences $(($(date +%s%3N) - began))"; }
done
wait_for 30 ctl list
touch /run/vm-test/enough
wait
read -r sent answered longest </run/vm-test/load
echo "     $kills kills, with so many frozen servers:$asleep; $sent requests, the longest took $longest ms"
echo "     times without a daemon in ms:$absences"
check "every request was answered in spite of $kills kills" same "$answered$(sed 1d /run/vm-test/load)" "$sent"
check "every server is the same process" same "$(pids)" "$before"
check "no server was left awake because it could not be watched" fails has "$(ctl --json idle)" notWatchable
check "all servers are suspended again" wait_for 120 all_suspended
every_woken() { for app in "${names[@]}"; do [ "$(wakes $app)" -gt 0 ] || { echo "$app"; return 1; }; done; }
check "input woke every server" every_woken

# The sign of life of a daemon that wakes and suspends workers all the time, beside some that get requests without a pause.
printf '%s\n' '[Unit]' StartLimitIntervalSec=0 '[Service]' WatchdogSec=8s >/run/systemd/system/greenroomd.service.d/test.conf
systemctl daemon-reload
systemctl kill --kill-whom=main --signal=KILL greenroomd
watched() { [ "$(property greenroomd WatchdogUSec)" = 8s ] && [ "$(property greenroomd WatchdogTimestampMonotonic)" -gt 0 ] && ctl list; }
check "the daemon is active with a watchdog of 8 s" wait_for 60 watched
rm -f /run/vm-test/enough
runs=$(property greenroomd NRestarts) beat=$(property greenroomd WatchdogTimestampMonotonic) began=$(date +%s)
timeout 300 ./client.py load 0 "${addresses[@]:0:10}" >/run/vm-test/load 2>&1 &
timeout 300 ./client.py load 4 "${addresses[@]:10}" >/run/vm-test/load-wakes 2>&1 &
sleep 20
check "a daemon under requests without a pause is not replaced" same "$(property greenroomd NRestarts)" "$runs"
check "it notified the watchdog meanwhile" test "$(property greenroomd WatchdogTimestampMonotonic)" -gt $((beat + 12000000))
touch /run/vm-test/enough
wait
for load in load load-wakes; do
    read -r sent answered longest </run/vm-test/$load
    echo "     $((sent / ($(date +%s) - began))) requests a second, the longest took $longest ms"
    check "every request of $load was answered" same "$answered$(sed 1d /run/vm-test/$load)" "$sent"
done
check "all servers are suspended once more" wait_for 120 all_suspended

numbers() { ls "/proc/$(property greenroomd MainPID)/fd" | wc -l; }
echo "     $(numbers) descriptors of the daemon while all are suspended"
rm -r /run/systemd/system/greenroomd.service.d
systemctl daemon-reload
for app in "${names[@]}"; do
    ctl terminate $app >/dev/null
    rm $apps/$app.app
done
ctl reload >/dev/null
echo "     $(numbers) descriptors of the daemon when they have ended"
