# Functions of the phases: check, skip, wait_for, and queries of the daemon and systemd.
set -u
export SYSTEMD_COLORS=0 SYSTEMD_PAGER=cat LC_ALL=C.UTF-8
apps=/etc/greenroom/apps
group=/sys/fs/cgroup/greenroom.slice/greenroom-apps.service/greenroom
testapp=/root/vm-test/greenroom-testapp
[ ! -e /usr/local/bin/greenroom-testapp ] || testapp=/usr/local/bin/greenroom-testapp

record() { echo "$1" | tee -a /run/vm-test/log; }

# check SENTENCE COMMAND…: passes if the command succeeds; otherwise prints its output.
check() {
    local sentence=$1 output
    shift
    if output=$("$@" 2>&1); then
        record "ok   $sentence"
    else
        record "FAIL $sentence"
        printf '%s\n' "$*" "$output" | head -n 25 | sed 's/^/     | /'
    fi
}
skip() { record "skip $1"; }

# wait_for SECONDS COMMAND…: waits until the command succeeds.
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ $SECONDS -ge $end ]; then
            echo "timeout: $*"
            "$@"
            return 1
        fi
        sleep 0.2
    done
}

# fails COMMAND…: succeeds if the command fails.
fails() { ! "$@"; }

ctl() { timeout 60 greenroomctl "$@"; }
field() { ctl list | awk -v app="$1" -v column="$2" '$1 == app { print $column }'; }
state() { field "$1" 2; }
is() { [ "$(state "$1")" = "$2" ] || { ctl list; return 1; }; }
pid() { field "$1" 3; }
property() { systemctl show "$1" --property "$2" --value; }
# receipt APP WORD…: checks that the last receipt of the app contains all words.
receipt() {
    local text app=$1
    shift
    text=$(ctl --json receipts -n 1 "$app")
    echo "$text"
    for word in "$@"; do [[ $text == *"$word"* ]] || return 1; done
}
# background APP: launches the app into the background, and waits until it is suspended.
background() { ctl launch "$1" --background >/dev/null && wait_for 30 is "$1" suspended; }
# In MiB.
available() { awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo; }
frozen() { grep -q '^frozen 1' "$group/$1".run*/cgroup.events; }
# runs_as PID UID: checks the real, effective and saved user ID.
runs_as() { [ "$(awk '/^Uid:/ { print $2 $3 $4 }' "/proc/$1/status")" = "$2$2$2" ]; }
same() { [ "$1" = "$2" ] || { echo "'$1' differs from '$2'"; return 1; }; }
has() { grep -qF -- "$2" <<<"$1" || { echo "'$2' not found in: $1"; return 1; }; }

# manifest ID SCRIPT LINE…: creates a manifest for the scripted app with its signals.
manifest() {
    local id=$1 script=$2
    shift 2
    {
        printf '%s\n' '[App]' 'Type=notify' "ExecStart=$testapp $script" "$@"
        cat <<'END'
[Signals]
EnterBackground=SIGUSR1
TaskExpiring=SIGRTMIN+2
MemoryWarning=SIGRTMIN+1
END
    } >"$apps/$id.app"
}
as_user() { runuser -u user -- env XDG_RUNTIME_DIR=/run/user/1000 "$@"; }

# server ID EXECSTART LINE…: creates a manifest for a worker, which input wakes; idle after 1s. Further lines are of [App].
server() {
    local id=$1 command=$2
    shift 2
    printf '%s\n' '[App]' "ExecStart=$command" Role=worker "$@" '[Lifecycle]' IdleSec=1s >"$apps/$id.app"
}
# ask ADDRESS: a request to server.py; answers prints whether the answer is correct.
ask() { timeout 100 /root/vm-test/client.py ask "$1"; }
answers() { same "$(ask "$2")" "hello $(pid "$1") 1"; }
# has_reason APP WORD: a reason why the app is awake.
has_reason() { has "$(ctl --json idle "$1")" "\"reason\":\"$2\""; }
# why APP: why it is awake, or what would wake it.
why() { ctl idle "$1" | tail -n 1; }
# journal_of ARGUMENT…: the messages of the daemon's journal since the machine was started.
journal_of() { journalctl -b -o cat "$@"; }
# woken APP WORDS: input of this kind has woken the app. Its entry in the journal stays: later input, also of the same request on a
# busy machine, replaces what status shows.
woken() { wait_for 30 eval "journal_of GREENROOM_APP=$1 | grep -qF 'woken by $2'"; }
# last_input APP KIND: status says that input of this kind was the last that woke the app.
last_input() { has "$(ctl --json idle "$1" | grep -o '"lastInput":{[^}]*}')" "\"kind\":\"$2\""; }
# wakes APP: how often input has woken it.
wakes() { ctl --json idle "$1" | grep -o '"trafficWakes":[0-9]*' | cut -d: -f2; }
