# Functions of the demo: the daemon, its lifecycle events and their output. Sourced by ../demo.
# shellcheck shell=bash

LC_ALL=C.UTF-8
export LC_ALL

folder= daemon= group= events= number=0 failures=() passed=0
# By app: its state, its exit code and receipt, and its output that is not printed yet.
declare -A state=() code=() receipt=() delayed=()
# The apps of the current part.
current=

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$'\e[1m' faint=$'\e[2m' red=$'\e[31m' green=$'\e[32m' yellow=$'\e[33m' blue=$'\e[34m' plain=$'\e[0m'
else
    bold='' faint='' red='' green='' yellow='' blue='' plain=''
fi

# Sets `now`: milliseconds since 1970.
read_clock() { now=$((10#${EPOCHREALTIME/[.,]/} / 1000)); }
read_clock
started=$now
# Standard error may be redirected when a signal arrives.
exec {errors}>&2
day=86400000

# MILLISECONDS → 12.345
seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

# ---- Output

# part TITLE APP…: starts a part. Prints the heading and the earlier events of these apps.
part() {
    number=$((number + 1))
    printf '\n%s%d. %s%s\n' "$bold" "$number" "$1" "$plain"
    shift
    current=" $* "
    local app
    for app; do
        printf '%s' "${delayed[$app]:-}"
        delayed[$app]=
    done
}

say() { printf '   %s\n' "$*"; }

# line TIME APP STATE TEXT COLOUR: prints an event.
line() { printf '%s%8s%s  %s%-7s%s%s%-12s%s%s\n' "$faint" "$1" "$plain" "$bold" "$2" "$plain" "$5" "$3" "$plain" "$4"; }

# expect SENTENCE COMMAND…: checks that the command succeeds and prints the sentence.
expect() {
    local sentence=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        say "$green✓$plain $sentence"
    else
        failures+=("$sentence")
        say "$red✗ Failed: $sentence$plain"
    fi
}

# ---- The daemon

# Ends the demo with an error and the last lines of the daemon's log.
fail() {
    printf '%sdemo: %s%s\n' "$red" "$*" "$plain" >&2
    [ ! -s "$folder/log" ] || { echo "Log of the daemon:"; tail -n 15 "$folder/log"; } >&2
    exit 1
}

ctl() { "$bin/greenroomctl" --runtime "$folder/run" "$@"; }

# Prints a command and runs it. Its output is not printed, as events show the result.
run() {
    say "$faint\$ greenroomctl $*$plain"
    ctl "$@" >"$folder/answer" 2>&1 || fail "greenroomctl $*: $(cat "$folder/answer")"
}

# json KEY TEXT: sets `value` to the first value of KEY in a JSON text, a string or a number.
json() {
    value=
    [[ $2 =~ \"$1\":\ *(\"([^\"]*)\"|[-0-9.]+) ]] || return 1
    value=${BASH_REMATCH[2]:-${BASH_REMATCH[1]}}
}

free_port() {
    "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])' \
        2>/dev/null
}

# Creates a directory with the manifests and starts a daemon, which gets SIGTERM when this shell ends.
start_daemon() {
    folder=$(mktemp -d "${TMPDIR:-/tmp}/greenroom-demo.XXXXXX") || exit 1
    # The path of a socket has at most 107 bytes.
    if [ ${#folder} -gt 70 ]; then
        rmdir "$folder"
        folder=$(mktemp -d /tmp/greenroom-demo.XXXXXX) || exit 1
    fi
    mkdir -p "$folder/config/apps" "$folder/site"
    local file
    for file in "$here"/apps/*.app; do
        sed "s|@PYTHON@|$python|; s|@PORT@|$port|; s|@WORKERPORT@|$worker_port|; s|@FOLDER@|$folder|g; s|@HERE@|$here|" "$file" \
            >"$folder/config/apps/${file##*/}"
    done
    cp "$here/greenroom.conf" "$folder/config/"
    setpriv --pdeathsig TERM setsid "$bin/greenroomd" --config "$folder/config" --runtime "$folder/run" \
        --state "$folder/state" >"$folder/log" 2>&1 </dev/null &
    daemon=$!
    local tries=0
    until [ -S "$folder/run/bus" ]; do
        kill -0 $daemon 2>/dev/null || fail "greenroomd did not start"
        [ $((tries += 1)) -lt 500 ] || fail "greenroomd is not ready after 10 s"
        sleep 0.02
    done
    subscribe
}

# Subscribes to lifecycle events. The subscription works when the events of a simulated memory level arrive.
subscribe() {
    exec {events}< <(exec "$bin/greenroomctl" --runtime "$folder/run" --json watch 2>/dev/null)
    local entry tries=0
    until ctl pressure warning >/dev/null 2>&1; ctl pressure normal >/dev/null 2>&1; read_entry 0.1; do
        [ $((tries += 1)) -lt 100 ] || fail "greenroomctl watch prints no events"
    done
    until [[ $entry == *'"level":"normal"'* ]]; do
        read_entry 5 || fail "greenroomctl watch stopped printing events"
    done
    json containment "$(ctl --json pressure)" || fail "greenroomctl pressure does not print the containment"
    [[ $value =~ below\ (/[^ ]+) ]] && group=${BASH_REMATCH[1]}
    local version
    version=$(ctl --version)
    say "greenroomd ${version##* }: $value"
}

# read_entry SECONDS: reads the next line of events into `entry`. Status as of read. What read has got of a line when its time is over is
# gone from the stream, and is the beginning of the next one.
begun=''
read_entry() {
    local status=0
    read -r -t "$1" -u "$events" entry || status=$?
    entry=$begun$entry begun=''
    if [ $status -gt 128 ]; then begun=$entry; fi
    return $status
}

# await APP WANTED: reads events until the app enters the state WANTED or has an event of the kind WANTED.
await() {
    local app=$1 wanted=$2 entry end status
    [ "$wanted" != ended ] || [ -z "${code[$app]:-}" ] || return 0
    read_clock
    end=$((now + 30000))
    while [ $now -lt $end ]; do
        read_clock
        status=0
        read_entry 1 || status=$?
        # A status above 128 is a timeout, another one the end of the stream.
        if [ $status -gt 128 ]; then continue; fi
        [ $status -eq 0 ] || fail "greenroomd exited"
        handle_event "$entry"
        [ "$event_app" = "$app" ] || continue
        [ "$event_state" != "$wanted" ] || return 0
        [ "$event_state" != ended ] || fail "$app ended; expected $wanted"
    done
    fail "$app: timeout after 30 s: expected $wanted; the state is ${state[$app]:-notRunning}"
}

# Records an event, and prints it now or in the part of its app. Sets `event_app` and `event_state`, which is the new state or
# the kind of the event.
handle_event() {
    local entry=$1 time text kind reason
    [[ $entry =~ \"time\":\"[-0-9]+T([0-9]+):([0-9]+):([0-9]+)\.([0-9]+)Z\" ]] || return 0
    time=$((10#${BASH_REMATCH[1]} * 3600000 + 10#${BASH_REMATCH[2]} * 60000))
    time=$((time + 10#${BASH_REMATCH[3]} * 1000 + 10#${BASH_REMATCH[4]:0:3}))
    time=$(((time - started % day + day) % day))
    json kind "$entry"; kind=$value event_state=$value
    json app "$entry"; event_app=$value
    json reason "$entry"; reason=$value
    case $kind in
    stateChanged) json state "$entry"; event_state=$value state[$event_app]=$value ;;
    ended)
        json code "$entry"; code[$event_app]=$value
        json receipt "$entry"; receipt[$event_app]=$value
        ;;
    esac
    json message "$entry"
    text=$(describe "$(seconds $time)" "$kind" "$reason" "${value#*: }")
    [ -n "$text" ] || return 0
    if [[ $current == *" ${event_app:-memory} "* ]]; then
        echo "$text"
    else
        delayed[${event_app:-memory}]+=$text$'\n'
    fi
}

# describe TIME KIND REASON MESSAGE: prints an event as a line, or nothing for a transient state.
describe() {
    case $2 in
    stateChanged) describe_state "$1" "$event_state" "$3" "${4#state changed: }" ;;
    ended) line "$1" "$event_app" ended "$4" "$red" ;;
    deadlineMissed | tasksExpiring) line "$1" "$event_app" '' "$4" "$yellow" ;;
    taskBegan | taskEnded) line "$1" "$event_app" '' "$4" '' ;;
    memoryLevelChanged) describe_memory "$1" "${4%% *}" ;;
    esac
}

describe_memory() {
    case $2 in
    normal) line "$1" memory "$2" "the apps use less than 90% of the memory budget" "$green" ;;
    warning) line "$1" memory "$2" "the apps use 90% of the memory budget" "$yellow" ;;
    critical) line "$1" memory "$2" "the apps exceed the memory budget" "$red" ;;
    esac
}

describe_state() {
    case $2/$3/$4 in
    launching/*) line "$1" "$event_app" "$2" "the process is started" '' ;;
    active/ready/*) line "$1" "$event_app" "$2" "ready and in the foreground" "$green" ;;
    active/*) line "$1" "$event_app" "$2" "in the foreground again" "$green" ;;
    # Transient: the app is resumed on its way to the foreground.
    background/requested/suspended*) ;;
    background/woken/*) line "$1" "$event_app" "$2" "woken by input" "$green" ;;
    background/ready/*) line "$1" "$event_app" "$2" "ready and in the background" '' ;;
    background/displaced/*) line "$1" "$event_app" "$2" "moved to the background: only one app is in the foreground" '' ;;
    background/*) line "$1" "$event_app" "$2" "notified to finish its work" '' ;;
    suspended/*) line "$1" "$event_app" "$2" "has no work left; its processes are frozen" "$blue" ;;
    terminating/requested/*) line "$1" "$event_app" "$2" "notified to terminate" '' ;;
    esac
}

# ---- Cleanup

# Stops the daemon and its apps. Fails if processes or cgroups are left.
stop_daemon() {
    local pid=$daemon
    [ -n "$pid" ] || return 0
    daemon=
    # The daemon gives its apps 5 s to terminate. After a second SIGTERM it kills them at once.
    end "$pid" TERM 400 || end "$pid" TERM 150 || end "$pid" KILL 150
    nothing_is_left
}

# end PID SIGNAL TRIES: sends a signal and waits for the end of the process, 20 ms for each try. Fails if it still runs.
end() {
    kill "-$2" "$1" 2>/dev/null
    local tries=0
    while kill -0 "$1" 2>/dev/null; do
        [ $((tries += 1)) -le "$3" ] || return 1
        sleep 0.02
    done
}

# Checks that the cgroup is removed and that no process has the directory in its environment or command line: the launcher of the daemon
# and `greenroomctl watch` may end a little later. grep reads the pattern from standard input: on its command line it would find itself.
# Its status does not count: some files cannot be read.
nothing_is_left() {
    [ -z "$group" ] || [ ! -e "$group" ] || return 1
    local tries=0
    while [ -n "$(grep -lsaF -f - /proc/[0-9]*/environ /proc/[0-9]*/cmdline <<<"$folder/")" ]; do
        [ $((tries += 1)) -le 100 ] || return 1
        sleep 0.2
    done
}

leave() {
    local status=$?
    trap '' INT TERM HUP PIPE
    trap - EXIT
    # shellcheck disable=SC2046 # The output is a list of numbers.
    kill $(jobs -p) 2>/dev/null
    stop_daemon || { echo "demo: processes or cgroups of $folder are left" >&"$errors"; status=1; }
    [ -z "$folder" ] || rm -rf "$folder"
    [ $status -lt 128 ] || echo "demo: interrupted; all processes and files were removed" >&"$errors"
    exit $status
}

trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP PIPE
