# Suspended servers and memory (L26, L37, L50): a server whose memory was swapped out answers, one that jetsam kills leaves no client
# waiting, and a wake by input ends after its own time without a kill.
install -m 755 server.py /usr/local/bin/vm-server
server large '/usr/local/bin/vm-server 7001' User=user Environment=MEMORY=64
ctl reload >/dev/null
ctl launch large >/dev/null
check "large is suspended" wait_for 60 eval 'is large suspended && frozen large'
swapped() { cat $group/large.run*/memory.swap.current; }
device=
if modprobe zram && device=$(zramctl -f -s 256M -a lzo-rle) && mkswap -q "$device" >/dev/null && swapon "$device"; then
    for _ in 1 2 3 4; do
        # EAGAIN: less than asked for.
        echo 32M >"$(echo $group/large.run*/memory.reclaim)"
    done 2>/dev/null
    check "the kernel has swapped the suspended server out" test "$(swapped)" -gt 40000000
    echo "     $(($(swapped) / 1048576)) MiB are swapped out"
    check "it is still suspended" eval 'is large suspended && frozen large'
    check "the server answers, and its memory is unchanged" answers large 7001
    check "a connection woke it" woken large "a connection"
    check "large is suspended again" wait_for 60 eval 'is large suspended && frozen large'
else
    skip "swap: this kernel has no zram"
fi

# The daemon holds no descriptor of a process that jetsam kills: otherwise its clients would wait.
exec 5<>/dev/tcp/127.0.0.1/7001
echo one >&5
read -t 60 -r answer <&5
check "large answers" same "$answer" "one $(pid large) 1"
check "large is suspended with a connection" wait_for 60 eval 'is large suspended && frozen large'
process=$(pid large)
ctl pressure critical
check "large is killed by jetsam" wait_for 30 receipt large jetsam suspended
check "its client sees the end of the connection" eval 'read -t 60 -r answer <&5; [ $? = 1 ]'
exec 5>&-
ctl pressure normal
check "the worker comes back (L49)" wait_for 90 eval '[ "$(pid large)" -gt 1 ] && ! same "$(pid large)" '"$process"
check "it is suspended" wait_for 60 is large suspended
check "it answers" answers large 7001
[ -z "$device" ] || { swapoff "$device" && zramctl -r "$device"; }

# An app that is no worker: its background time is 3s, a wake has its own 30s. It is never idle while a client is connected.
printf '%s\n' '[App]' 'ExecStart=/usr/local/bin/vm-server 7002' User=user '[Lifecycle]' BackgroundTimeSec=3s \
    ExpirationNoticeSec=1s KeepAwake=connections '[Wake]' Traffic=yes >$apps/ordinary.app
ctl reload >/dev/null
ctl launch ordinary --background >/dev/null
check "ordinary is suspended" wait_for 60 eval 'is ordinary suspended && frozen ordinary'
process=$(pid ordinary)
weight() { cat $group/ordinary.run*/cpu.idle; }
exec 5<>/dev/tcp/127.0.0.1/7002
echo 1 >&5
read -t 60 -r answer <&5
check "a connection wakes it" same "$answer" "1 $process 1"
check "input has woken it once" test "$(wakes ordinary)" = 1
check "while it is awake for input it runs at normal weight (L19)" same "$(is ordinary background && weight)" 0
number=1 wrong=0 end=$((SECONDS + 100))
while [ $SECONDS -lt $end ] && [ "$(wakes ordinary)" -lt 2 ]; do
    for _ in 1 2 3 4 5 6 7 8; do
        number=$((number + 1))
        echo $number >&5
        read -t 60 -r answer <&5 && [ "$answer" = "$number $process $number" ] || wrong=$((wrong + 1))
        sleep 0.1
    done
done
check "the wake ended although the client continued, and its next line woke the app" test "$(wakes ordinary)" -ge 2
check "all $number lines were answered, in order" same $wrong 0
check "the app is the same process: the end of a wake by input kills nothing" same "$(pid ordinary)" "$process"
check "it has no receipt" fails receipt ordinary '"id"'
journalctl -b -o short-monotonic GREENROOM_APP=ordinary | tail -n 8 | sed 's/^/     /'
exec 5>&-
for app in large ordinary; do
    ctl terminate $app >/dev/null
    rm $apps/$app.app
done
ctl reload >/dev/null
