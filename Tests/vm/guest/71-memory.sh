# What counts as the memory of an app, and who is killed for it.
mebibytes() { echo $(($(ctl --json status "$1" | grep -o '"memoryBytes": *[0-9]*' | head -n 1 | tr -dc 0-9) >> 20)); }

# Page cache is no memory of an app: the kernel takes it back without a kill.
dd if=/dev/zero of=/root/large-file bs=1M count=600 status=none
sync
# Page cache is charged to the group that reads the file first.
echo 1 >/proc/sys/vm/drop_caches
cat >$apps/reader.app <<'END'
[App]
ExecStart=/bin/sh -c 'cat /root/large-file >/dev/null; touch /run/reader-done; exec sleep 100000'
StartupSec=0
END
manifest holder "share 120000000 ready"
manifest owner "allocate 99000000 ready"
ctl reload >/dev/null
ctl launch reader >/dev/null
check "a reader of 600 MB has read them" wait_for 120 test -e /run/reader-done
check "it is active" is reader active
echo "     $(available) MiB are available; the group of the reader is charged with $(($(cat $group/reader.run*/memory.current) >> 20)) MiB"
check "most of what its group is charged with is page cache" test "$(cat $group/reader.run*/memory.current)" -gt 200000000
ctl background reader >/dev/null
check "it is suspended" wait_for 30 is reader suspended
check "its footprint is below 20 MiB" test "$(mebibytes reader)" -lt 20
check "an app with 99 MB of its own is suspended" background owner
check "an app with 120 MB of shared memory is suspended" background holder
ctl list | sed 's/^/     /'
check "shared memory counts" test "$(mebibytes holder)" -ge 114
ctl pressure critical >/dev/null
check "the holder of the shared memory is killed first" wait_for 30 receipt holder jetsam suspended
ctl pressure normal >/dev/null
ctl pressure critical >/dev/null
check "then the app with memory of its own" wait_for 30 receipt owner jetsam suspended
ctl pressure normal >/dev/null
check "the reader of the large file is still suspended" is reader suspended
ctl terminate reader >/dev/null
rm -f $apps/{reader,holder,owner}.app /root/large-file /run/reader-done
