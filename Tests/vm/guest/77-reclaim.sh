# What suspended apps have is pushed out to swap, and comes back (L37).
status_value() { ctl --json status "$1" | grep -o "\"$2\": *[0-9]*" | head -n 1 | tr -dc 0-9; }
pushed_out() { journal_of GREENROOM_APP="$1" | grep 'of it out to swap' | tail -n 1 | grep .; }

modprobe zram
device=$(zramctl -f -s 600M -a lzo-rle)
mkswap "$device" >/dev/null
swapon "$device"
manifest sleeper "allocate 150000000 ready" User=user "[Lifecycle]" LaunchDeadlineSec=2min ReclaimOnSuspend=yes
manifest stayer "allocate 40000000 ready" "[Lifecycle]" LaunchDeadlineSec=2min ReclaimOnSuspend=no
cat >/usr/local/bin/watcher <<'END'
#!/bin/sh
exec 3<>"$MEMORY_PRESSURE_WATCH" && printf %s "$MEMORY_PRESSURE_WRITE" | base64 -d >&3 && touch /tmp/it-watches && exec sleep 100000
END
chmod +x /usr/local/bin/watcher
printf '[App]\nExecStart=/usr/local/bin/watcher\nUser=user\n' >$apps/watcher.app
ctl reload >/dev/null
# The daemon reads how much swap there is with the memory of an app that runs.
ctl launch watcher >/dev/null
check "an app watches the memory pressure of its group, as its user" \
    wait_for 30 test -e /tmp/it-watches
check "two apps are suspended" eval "background stayer && background sleeper"
ctl list | sed 's/^/     /'
before=$(status_value sleeper residentBytes)
began=$(date +%s%N)
check "the memory of one is pushed out" wait_for 60 pushed_out sleeper
echo "     $(($(date +%s%N) - began)) ns after its suspension: $(pushed_out sleeper)"
resident=$(status_value sleeper residentBytes) swapped=$(status_value sleeper swappedBytes)
echo "     $before bytes before; $resident resident, $swapped in swap"
check "at least 95% of it is in swap" test "$swapped" -gt $((142 * 1000 * 1000))
check "its status says how much" has "$(ctl status sleeper)" "in swap"
check "the other one keeps its memory" test "$(status_value stayer swappedBytes)" -lt 4000000
check "the daemon lives, and all apps are suspended or active" eval "is sleeper suspended && is stayer suspended"
check "it runs again when it is activated" eval "ctl activate sleeper >/dev/null && is sleeper active"
check "nothing of it is pushed out twice in one sleep" same "$(journal_of GREENROOM_APP=sleeper | grep -c 'out to swap')" 1
for app in sleeper stayer watcher; do ctl terminate $app >/dev/null; done
rm -f $apps/{sleeper,stayer,watcher}.app /usr/local/bin/watcher /tmp/it-watches
ctl reload >/dev/null
swapoff "$device"
zramctl -r "$device"
