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

# What a wake has only read since it was pushed out is still in swap on a disk, and is pushed out again nevertheless.
install -m 755 pages.py /usr/local/bin/vm-pages
fallocate -l 500M /root/swap && chmod 600 /root/swap && mkswap /root/swap >/dev/null && swapon /root/swap
server pages "/usr/local/bin/vm-pages serve /run/pages 128" Type=listening
printf '%s\n' ReclaimOnSuspend=yes LaunchDeadlineSec=2min >>$apps/pages.app
ctl reload >/dev/null
# pushed_out_wholly: it is suspended, and less of it is in memory than any request below reads.
pushed_out_wholly() { is pages suspended && [ "$(status_value pages residentBytes)" -lt 4000000 ]; }
reads() { timeout 100 vm-pages ask /run/pages "$@" | grep .; }
sizes() { echo "     $(status_value pages residentBytes) bytes resident, $(status_value pages swappedBytes) in swap"; }
ctl launch pages >/dev/null
# A slice that takes a second is the last in a suspension; the rest follows in the next one.
in_some_suspensions() { for _ in {1..9}; do wait_for 15 pushed_out_wholly && return || reads 0 1; done; false; }
check "a server is pushed out to a disk" in_some_suspensions
sizes
check "a request reads 32 MiB" reads 8192 1
sizes
check "it is pushed out again" wait_for 90 pushed_out_wholly
sizes

# The pages that its last wake has touched are read when it is woken: here before it touches them again.
major_faults() { awk '{ print $12 }' "/proc/$(pid pages)/stat"; }
are_read() { [ "$(awk '/^swapcached / { print $2 }' "$group"/pages.run*/memory.stat)" -ge $((1500 * 4096)) ]; }
before=$(major_faults)
check "a request reads 1500 pages, each of which is far from the others" reads 1500 20
first=$(($(major_faults) - before))
check "it is pushed out once more" wait_for 90 pushed_out_wholly
check "with a request that reads none of them" reads 0 1
check "the kernel reads them" wait_for 30 are_read
before=$(major_faults)
check "a request reads the same pages again" reads 1500 20
again=$(($(major_faults) - before))
echo "     $first major faults at first, $again then"
check "few of them wait for the disk" test $((again * 5)) -lt "$first"
ctl terminate pages >/dev/null
rm -f $apps/pages.app /usr/local/bin/vm-pages
ctl reload >/dev/null
swapoff /root/swap
rm -f /root/swap
