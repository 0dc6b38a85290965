# What the demo is made of: a daemon of its own, its news, and words for them. Sourced by ../demo.
# shellcheck shell=bash

LC_ALL=C.UTF-8
export LC_ALL

folder= daemon= group= news= ordinal=0 failures=() kept=0
declare -A state=() code=() receipt=() held=()
onstage=

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$'\e[1m' faint=$'\e[2m' red=$'\e[31m' green=$'\e[32m' yellow=$'\e[33m' blue=$'\e[34m' plain=$'\e[0m'
else
    bold='' faint='' red='' green='' yellow='' blue='' plain=''
fi

# Sets `now`: milliseconds since 1970.
look_at_clock() { now=$((10#${EPOCHREALTIME/[.,]/} / 1000)); }
look_at_clock
started=$now
# An interruption may find standard error elsewhere.
exec {complaints}>&2
day=86400000

# MILLISECONDS → 12.345
seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

# ---- Words on the terminal

# A new part: its heading, and the apps it is about. What these did before is told now.
part() {
    ordinal=$((ordinal + 1))
    printf '\n%s%d. %s%s\n' "$bold" "$ordinal" "$1" "$plain"
    shift
    onstage=" $* "
    local app
    for app; do
        printf '%s' "${held[$app]:-}"
        held[$app]=
    done
}

say() { printf '   %s\n' "$*"; }

# A line of the story: TIME APP STATE TEXT, colour.
line() { printf '%s%8s%s  %s%-7s%s%s%-12s%s%s\n' "$faint" "$1" "$plain" "$bold" "$2" "$plain" "$5" "$3" "$plain" "$4"; }

# What was promised: a sentence, and a command that is true if it holds.
promise() {
    local sentence=$1
    shift
    if "$@"; then
        kept=$((kept + 1))
        say "$green✓$plain $sentence"
    else
        failures+=("$sentence")
        say "$red✗ This did not hold: $sentence$plain"
    fi
}

# ---- The daemon

# The demo can't go on.
give_up() {
    printf '%sdemo: %s%s\n' "$red" "$*" "$plain" >&2
    [ ! -s "$folder/log" ] || { echo "The daemon said:"; tail -n 15 "$folder/log"; } >&2
    exit 1
}

ctl() { "$bin/greenroomctl" --runtime "$folder/run" "$@"; }

# As above, shown before and without its answer: the news tell.
run() {
    say "$faint\$ greenroomctl $*$plain"
    ctl "$@" >"$folder/answer" 2>&1 || give_up "greenroomctl $*: $(cat "$folder/answer")"
}

# Sets `value` to that of KEY, a string or a number, where it first stands in a JSON text.
json() {
    value=
    [[ $2 =~ \"$1\":\ *(\"([^\"]*)\"|[-0-9.]+) ]] || return 1
    value=${BASH_REMATCH[2]:-${BASH_REMATCH[1]}}
}

free_port() {
    "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])' \
        2>/dev/null
}

# A folder with the manifests, and a daemon on it that ends when this shell does, however that ends.
start_daemon() {
    folder=$(mktemp -d "${TMPDIR:-/tmp}/greenroom-demo.XXXXXX") || exit 1
    # A socket's path has room for 107 bytes.
    if [ ${#folder} -gt 70 ]; then
        rmdir "$folder"
        folder=$(mktemp -d /tmp/greenroom-demo.XXXXXX) || exit 1
    fi
    mkdir -p "$folder/config/apps" "$folder/site"
    local file
    for file in "$here"/apps/*.app; do
        sed "s|@PYTHON@|$python|; s|@PORT@|$port|; s|@FOLDER@|$folder|g; s|@HERE@|$here|" "$file" \
            >"$folder/config/apps/${file##*/}"
    done
    cp "$here/greenroom.conf" "$folder/config/"
    setpriv --pdeathsig TERM setsid "$bin/greenroomd" --config "$folder/config" --runtime "$folder/run" \
        --state "$folder/state" >"$folder/log" 2>&1 </dev/null &
    daemon=$!
    local tries=0
    until [ -S "$folder/run/bus" ]; do
        kill -0 $daemon 2>/dev/null || give_up "greenroomd did not start"
        [ $((tries += 1)) -lt 500 ] || give_up "greenroomd is not ready after 10 s"
        sleep 0.02
    done
    listen
}

# Follows the news. The connection stands when something that was done has come back as news.
listen() {
    exec {news}< <(exec "$bin/greenroomctl" --runtime "$folder/run" --json watch 2>/dev/null)
    local entry tries=0
    until ctl pressure warning >/dev/null 2>&1; ctl pressure normal >/dev/null 2>&1; read -r -t 0.1 -u "$news" entry; do
        [ $((tries += 1)) -lt 100 ] || give_up "greenroomctl watch hears nothing"
    done
    until [[ $entry == *'"level":"normal"'* ]]; do
        read -r -t 5 -u "$news" entry || give_up "greenroomctl watch hears nothing more"
    done
    json containment "$(ctl --json pressure)" || give_up "greenroomctl pressure does not say how apps are contained"
    [[ $value =~ below\ (/[^ ]+) ]] && group=${BASH_REMATCH[1]}
    local version
    version=$(ctl --version)
    say "greenroomd ${version##* } is $value."
}

# Reads news until APP is in the state WANTED, or `ended`, or WANTED is what happened to it.
await() {
    local app=$1 wanted=$2 entry end
    [ "$wanted" != ended ] || [ -z "${code[$app]:-}" ] || return 0
    look_at_clock
    end=$((now + 30000))
    while [ $now -lt $end ]; do
        look_at_clock
        if ! read -r -t 1 -u "$news" entry; then
            # Above 128: nothing came. Else there will be nothing more.
            [ $? -gt 128 ] || give_up "greenroomd has ended"
            continue
        fi
        heard "$entry"
        [ "$heard_app" = "$app" ] || continue
        [ "$heard_what" != "$wanted" ] || return 0
        [ "$heard_what" != ended ] || give_up "$app ended instead of becoming $wanted"
    done
    give_up "$app: no “$wanted” in 30 s (it is ${state[$app]:-not running})"
}

# One piece of news: remembers it, and tells it or keeps it for its part of the story.
heard() {
    local entry=$1 time text kind reason
    [[ $entry =~ \"time\":\"[-0-9]+T([0-9]+):([0-9]+):([0-9]+)\.([0-9]+)Z\" ]] || return 0
    time=$((10#${BASH_REMATCH[1]} * 3600000 + 10#${BASH_REMATCH[2]} * 60000))
    time=$((time + 10#${BASH_REMATCH[3]} * 1000 + 10#${BASH_REMATCH[4]:0:3}))
    time=$(((time - started % day + day) % day))
    json kind "$entry"; kind=$value heard_what=$value
    json app "$entry"; heard_app=$value
    json reason "$entry"; reason=$value
    case $kind in
    stateChanged) json state "$entry"; heard_what=$value state[$heard_app]=$value ;;
    ended)
        json code "$entry"; code[$heard_app]=$value
        json receipt "$entry"; receipt[$heard_app]=$value
        ;;
    esac
    json message "$entry"
    text=$(tell "$(seconds $time)" "$kind" "$reason" "${value#*: }")
    [ -n "$text" ] || return 0
    if [[ $onstage == *" ${heard_app:-memory} "* ]]; then
        echo "$text"
    else
        held[${heard_app:-memory}]+=$text$'\n'
    fi
}

# TIME KIND REASON MESSAGE → a line in plain words, or nothing for what is over in the same moment.
tell() {
    case $2 in
    stateChanged) tell_state "$1" "$heard_what" "$3" "${4#state changed: }" ;;
    ended) line "$1" "$heard_app" ended "$4" "$red" ;;
    deadlineMissed | tasksExpiring) line "$1" "$heard_app" '' "$4" "$yellow" ;;
    taskBegan | taskEnded) line "$1" "$heard_app" '' "$4" '' ;;
    memoryLevelChanged) tell_memory "$1" "${4%% *}" ;;
    esac
}

tell_memory() {
    case $2 in
    normal) line "$1" memory "$2" "enough came back" "$green" ;;
    warning) line "$1" memory "$2" "nine tenths of the budget are used" "$yellow" ;;
    critical) line "$1" memory "$2" "all apps together are over the budget" "$red" ;;
    esac
}

tell_state() {
    case $2/$3/$4 in
    launching/*) line "$1" "$heard_app" "$2" "a process comes into being" '' ;;
    active/ready/*) line "$1" "$heard_app" "$2" "ready, and in the foreground" "$green" ;;
    active/*) line "$1" "$heard_app" "$2" "in the foreground again" "$green" ;;
    # Thawed, on its way to the foreground.
    background/requested/suspended*) ;;
    background/ready/*) line "$1" "$heard_app" "$2" "ready, and in the background" '' ;;
    background/displaced/*) line "$1" "$heard_app" "$2" "makes room: one app is in the foreground at a time" '' ;;
    background/*) line "$1" "$heard_app" "$2" "told to finish what it is doing" '' ;;
    suspended/*) line "$1" "$heard_app" "$2" "has nothing left to do: not one instruction more" "$blue" ;;
    terminating/requested/*) line "$1" "$heard_app" "$2" "told to end" '' ;;
    esac
}

# ---- The end

# Ends the daemon, and with it its apps. False if something is left.
stop_daemon() {
    local pid=$daemon
    [ -n "$pid" ] || return 0
    daemon=
    # It gives its apps 5 s; asked twice it gives them none.
    end "$pid" TERM 400 || end "$pid" TERM 150 || end "$pid" KILL 150
    nothing_is_left
}

# PID SIGNAL TRIES: whether it is gone after that many fiftieths of a second.
end() {
    kill "-$2" "$1" 2>/dev/null
    local tries=0
    while kill -0 "$1" 2>/dev/null; do
        [ $((tries += 1)) -le "$3" ] || return 1
        sleep 0.02
    done
}

# Looks for processes that know of the demo's folder. The name comes on standard input: on the command line grep would
# find itself.
nothing_is_left() {
    [ -z "$group" ] || [ ! -e "$group" ] || return 1
    ! grep -lsaF -f - /proc/[0-9]*/environ /proc/[0-9]*/cmdline <<<"$folder/" >/dev/null
}

leave() {
    local status=$?
    trap '' INT TERM HUP PIPE
    trap - EXIT
    # shellcheck disable=SC2046 # a number each
    kill $(jobs -p) 2>/dev/null
    stop_daemon || { echo "demo: something is left of $folder" >&"$complaints"; status=1; }
    [ -z "$folder" ] || rm -rf "$folder"
    [ $status -lt 128 ] || echo "demo: interrupted; nothing is left of it" >&"$complaints"
    exit $status
}

trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP PIPE
