# Checks permissions on the private socket and on the system bus.
manifest bus "ready"
ctl reload >/dev/null
ctl launch bus >/dev/null
call() { busctl --timeout 30 call org.greenroom /org/greenroom org.greenroom.Manager1 "$@"; }
user_call() { runuser -u user -- busctl --timeout 30 call org.greenroom /org/greenroom org.greenroom.Manager1 "$@"; }

check "a user may call List" runuser -u user -- greenroomctl --system list
check "a user may not call Terminate" fails runuser -u user -- greenroomctl --system terminate bus
check "the app is still active" is bus active
check "a user may not connect to the private socket" fails \
    runuser -u user -- busctl --address unix:path=/run/greenroom/bus call org.greenroom /org/greenroom \
    org.greenroom.Manager1 Status s bus
check "the mode of the private socket is 0600" same "$(stat -c %a /run/greenroom/bus)" 600

if [ ! -e /usr/share/dbus-1/system.d/org.greenroom.conf ]; then
    skip "system bus: no policy file is installed"
elif ! busctl status org.greenroom >/dev/null 2>&1; then
    check "the daemon owns org.greenroom on the system bus" busctl status org.greenroom
else
    check "root may call List on the system bus" call List
    check "a user may call Status on the system bus" user_call Status s bus
    output=$(user_call Terminate sb bus false 2>&1)
    status=$?
    check "a user may not call Terminate on the system bus" fails test $status = 0
    check "the error explains the required permission" has "$output" "root"
    echo "     $output"
    check "the app is still active" is bus active
    check "the objects can be introspected" eval "busctl tree org.greenroom | grep -q /org/greenroom/app/bus"
    usermod -aG greenroom user
    check "a member of the group greenroom may call Background (polkit)" user_call Background s bus
    check "a member of the group greenroom may not call Reload without authentication" fails user_call Reload
    check "a member of the group greenroom may not call SimulatePressure without authentication" \
        fails user_call SimulatePressure s normal
    gpasswd -d user greenroom >/dev/null
    check "after leaving the group, the user may not call Activate" fails user_call Activate s bus
    # In a terminal session polkit asks members of the group sudo for their password, as for systemctl.
    if ! command -v script pkttyagent >/dev/null; then
        skip "polkit agent: script(1) or pkttyagent is missing"
    else
        echo user:secret | chpasswd
        usermod -aG sudo user
        ctl activate bus >/dev/null
        # Input before the prompt is discarded, so the password is sent several times.
        for _ in 1 2 3 4 5; do sleep 4; echo secret; done |
            timeout 60 script -qec "systemd-run --quiet --pty --wait -p PAMName=login -p User=user \
                greenroomctl --system background bus" /dev/null >/run/vm-test/agent 2>&1
        check "in a terminal session a user may call Background after entering the password" has "$(cat /run/vm-test/agent)" "bus: background"
        grep -aiE 'authenti|password|bus:' /run/vm-test/agent | sed 's/^/     | /'
        gpasswd -d user sudo >/dev/null
        passwd -ql user
    fi
    check "root may terminate" call Terminate sb bus false
fi
ctl terminate bus >/dev/null 2>&1
check "the daemon is active" systemctl is-active greenroomd
