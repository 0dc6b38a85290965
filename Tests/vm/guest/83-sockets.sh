# Sockets that the daemon holds (L29): a connection launches and wakes apps of other users, and a restart, an upgrade and a kill keep
# the sockets with the clients that wait.
# held ID COMMANDS APP-LINE WAKE-LINE…: an app that sends back what it receives at its sockets.
held() {
    local id=$1 commands=$2 line=$3
    shift 3
    printf '%s\n' '[App]' Role=worker "ExecStart=$testapp held $commands" "$line" StartupSec=0 '[Lifecycle]' IdleSec=1s '[Wake]' \
        "$@" >"$apps/$id.app"
}
held web '' User=user ListenStream=7101 ListenStream=127.0.0.1:81 ListenStream=/run/held-web/socket ListenDatagram=127.0.0.1:7101 \
    SocketUser=user SocketMode=0600 DirectoryMode=0711
held failing 'exit 1' User=user ListenStream=/run/failing.socket ConnectionWaitSec=infinity
ctl reload >/dev/null
stored() { property greenroomd NFileDescriptorStore; }
file() { stat -c '%a %U %i' "$1"; }
echoes() { same "$(ask "$1")" hello; }

check "the app does not run before a client comes" is web notRunning
check "the file of its socket has the mode and the owner of the manifest" has "$(file /run/held-web/socket)" '600 user'
check "its folder is made" same "$(stat -c %a /run/held-web)" 711
check "a connection launches the app" echoes 7101
check "it runs as its user" runs_as "$(pid web)" "$(id -u user)"
check "the app has a port below 1024" echoes 81
check "the app has a socket with a path" echoes /run/held-web/socket
check "it is suspended when it is idle" wait_for 30 eval "is web suspended && frozen web"
check "a connection wakes it" echoes 7101
check "status shows the sockets" has "$(ctl status web)" /run/held-web/socket
server=$(pid web)

# A client that waits for an app whose launches fail, from before each event until the app works.
later() {
    python3 -c 'import socket; client = socket.socket(socket.AF_UNIX); client.settimeout(500)
client.connect("/run/failing.socket"); client.sendall(b"hello"); print(client.recv(100).decode())' >"/run/vm-test/waited-$1" 2>&1 &
}
postponed() { has "$(ctl --json status failing)" launchPostponedSeconds; }
rm -f /run/vm-test/waited-*
later restart
check "the launch of an app that fails is held back, and its client waits" wait_for 60 postponed
before="$(file /run/failing.socket) $(file /run/held-web/socket)"
# survived WHAT: checks that everything is as before.
survived() {
    wait_for 60 ctl list >/dev/null
    check "$1: the files are those of the same sockets" same "$(file /run/failing.socket) $(file /run/held-web/socket)" "$before"
    check "$1: the app is the same process" same "$(pid web)" "$server"
    check "$1: its sockets work" eval "echoes 7101 && echoes 81 && echoes /run/held-web/socket"
    check "$1: it is suspended again" wait_for 30 eval "is web suspended && frozen web"
    check "$1: a connection wakes it" echoes 7101
    check "$1: no socket has a problem" fails has "$(ctl --json status web failing)" '"problem"'
    check "$1: no client was reset" same "$(cat /run/vm-test/waited-*)" ""
}
echo "     $(stored) descriptors are stored"
systemctl restart greenroomd
survived "systemctl restart"
later upgrade
check "the next version installs" dpkg -i ./greenroom-next.deb
survived "upgrade"
later downgrade
check "the previous version installs" dpkg -i ./greenroom.deb
survived "downgrade"
later kill
runs=$(property greenroomd NRestarts)
kill -KILL "$(property greenroomd MainPID)"
check "a client that comes without a daemon waits for the next one" echoes 7101
check "systemd has started the next daemon" wait_for 30 eval '[ "$(property greenroomd NRestarts)" -gt "$runs" ]'
survived "kill"

held failing '' User=user ListenStream=/run/failing.socket ConnectionWaitSec=infinity
ctl reload >/dev/null
ctl launch failing --background >/dev/null
wait
for event in restart upgrade downgrade kill; do
    check "the client that waited since before the $event is answered" same "$(cat "/run/vm-test/waited-$event")" hello
done

systemctl stop greenroomd
check "a stop removes the files" eval '[ ! -e /run/failing.socket ] && [ ! -e /run/held-web/socket ]'
check "a stop closes the ports" fails ask 7101
systemctl start greenroomd
check "after the next start a connection launches the app" echoes 7101
check "it is another process" fails same "$(pid web)" "$server"
before=$(stored)
for app in web failing; do
    ctl terminate $app >/dev/null
    rm $apps/$app.app
done
ctl reload >/dev/null
check "an app that is removed has no socket" eval '[ ! -e /run/failing.socket ] && fails ask 7101'
echo "     descriptors that were stored: $before, then $(stored)"
