# Who may ask for what: on the daemon's own socket, and on the system's bus.
manifest bus "ready"
ctl reload >/dev/null
ctl launch bus >/dev/null
call() { busctl --timeout 30 call org.greenroom /org/greenroom org.greenroom.Manager1 "$@"; }
user_call() { runuser -u user -- busctl --timeout 30 call org.greenroom /org/greenroom org.greenroom.Manager1 "$@"; }

check "a user may look" runuser -u user -- greenroomctl --system list
check "and may not terminate" refuse runuser -u user -- greenroomctl --system terminate bus
check "the app runs on" is bus active
check "a user's busctl may read at the socket" \
    runuser -u user -- busctl --address unix:path=/run/greenroom/bus call org.greenroom /org/greenroom \
    org.greenroom.Manager1 Status s bus

if [ ! -e /usr/share/dbus-1/system.d/org.greenroom.conf ]; then
    skip "the system's bus: no policy file is installed"
elif ! busctl status org.greenroom >/dev/null 2>&1; then
    check "the name org.greenroom is on the system's bus" busctl status org.greenroom
else
    check "root may call on the system's bus" call List
    check "a user may read there" user_call Status s bus
    output=$(user_call Terminate sb bus false 2>&1)
    status=$?
    check "and is refused what changes anything" refuse test $status = 0
    check "with a sentence" has "$output" "root"
    echo "     $output"
    check "the app runs on" is bus active
    check "the objects can be introspected" eval "busctl tree org.greenroom | grep -q /org/greenroom/app/bus"
    usermod -aG greenroom user
    check "a member of the group greenroom may manage apps (polkit)" user_call Background s bus
    gpasswd -d user greenroom >/dev/null
    check "and no longer, when it is none" refuse user_call Activate s bus
    # In a session at a terminal whoever may become root is asked for his password, as by systemctl: the members of sudo.
    if ! command -v script pkttyagent >/dev/null; then
        skip "polkit's agent for terminals: script(1) or pkttyagent is missing"
    else
        echo user:secret | chpasswd
        usermod -aG sudo user
        ctl activate bus >/dev/null
        # What is typed before it is asked for is thrown away, so it is typed more than once.
        for _ in 1 2 3 4 5; do sleep 4; echo secret; done |
            timeout 60 script -qec "systemd-run --quiet --pty --wait -p PAMName=login -p User=user \
                greenroomctl --system background bus" /dev/null >/run/vm-test/agent 2>&1
        check "at a terminal a user is asked for the password, and then may" has "$(cat /run/vm-test/agent)" "bus: background"
        grep -aiE 'authenti|password|bus:' /run/vm-test/agent | sed 's/^/     | /'
        gpasswd -d user sudo >/dev/null
        passwd -ql user
    fi
    check "root may terminate" call Terminate sb bus false
fi
ctl terminate bus >/dev/null 2>&1
check "the daemon is none the worse for it" systemctl is-active greenroomd
