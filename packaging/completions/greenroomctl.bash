# bash completion for greenroomctl. packaging/check compares it with the program.

# Prints the first word of each line of the program's output, from the daemon that the command line selects. With STATES, a
# pattern, only of lines whose second word matches.
__greenroomctl_query() { # STATES VERB…
    local states=$1
    shift
    command greenroomctl "${daemon[@]}" "$@" 2>/dev/null | while read -r word state _; do
        # shellcheck disable=SC2053
        [[ -z $states || $state == $states ]] && printf '%s\n' "$word"
    done
}

_greenroomctl() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb='' first='' operands=0 daemon=() i words
    # `--runtime=DIR` is three words: readline divides them at the equals sign.
    if [[ $word == = ]]; then
        word=
    elif [[ $before == = ]] && ((COMP_CWORD > 1)); then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --runtime | --reason | --url | --lines | -n | --since | --property | -p | --config | --setenv | -E | --after | --timeout | --result | --answer | --url-scheme | --state | --sort | --interval | --count | --scene | --protocol | --client | --rounds | --only | --junit)
            local option=${COMP_WORDS[i]}
            [[ ${COMP_WORDS[i + 1]:-} != = ]] || ((++i))
            ((++i))
            [[ $option != --runtime ]] || daemon=(--runtime "${COMP_WORDS[i]:-}")
            ;;
        --system | --user) daemon=("${COMP_WORDS[i]}") ;;
        -*) ;;
        *) if [[ -z $verb ]]; then verb=${COMP_WORDS[i]}; else first=${first:-${COMP_WORDS[i]}} && ((++operands)); fi ;;
        esac
    done
    case $before in
    --runtime | --config)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    --reason)
        mapfile -t COMPREPLY < <(compgen -W 'user url push fetch socket timer accessory location relaunch' -- "$word")
        return
        ;;
    --since)
        mapfile -t COMPREPLY < <(compgen -W 'today yesterday now -1h -10min' -- "$word")
        return
        ;;
    --property | -p)
        words='id name state pid since memoryBytes residentBytes swappedBytes savedBytes tasks wakes awake suspendsInSeconds trafficWakes
            lastInput watch sockets timers connectionsWaitingSeconds unloadsInSeconds shortestWaitSeconds deadline foreground launches interruptions backgroundTimeRemainingSeconds
            launchPostponedSeconds launchWaitingSeconds memoryAwaitedBytes
            backgroundTimeLastHourSeconds backgroundTimePerHourSeconds statusText suspendProblem lastReceipt error files
            template transient needsReload'
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
        return
        ;;
    --state)
        mapfile -t COMPREPLY < <(compgen -W 'active inactive launching background suspended terminating notRunning' -- "$word")
        return
        ;;
    --only)
        words='launch interruption background suspend push fetch timer url activate notification system-events lock memory-warning scenes load
            kill reexec daemon-kill terminate'
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
        return
        ;;
    --client)
        mapfile -t COMPREPLY < <(compgen -c -- "$word")
        return
        ;;
    --jetsam-order)
        mapfile -t COMPREPLY < <(compgen -W 'largest lru balanced' -- "$word")
        return
        ;;
    --file | --output | -o | --junit)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --sort)
        words='name state memory since'
        [[ $verb != top ]] || words='state name memory resident swapped saved cpu wakes left'
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
        return
        ;;
    --setenv | -E)
        mapfile -t COMPREPLY < <(compgen -v -- "$word")
        return
        ;;
    --result)
        mapfile -t COMPREPLY < <(compgen -W 'new-data no-data failed' -- "$word")
        return
        ;;
    --protocol)
        mapfile -t COMPREPLY < <(compgen -W 'jsonrpc mcp' -- "$word")
        return
        ;;
    --url | --lines | -n | --after | --timeout | --answer | --rounds | --url-scheme | --interval | --count | --scene) return ;;
    esac
    if [[ $word == -* ]]; then
        words='--json --system --user --runtime --help'
        case $verb in
        '') words+=' --version' ;;
        list) words+=' --state --sort --scenes --clients --full' ;;
        launch) words+=' --background --reason --url --setenv --no-block' ;;
        activate | background | close) words+=' --scene --no-block' ;;
        resume | cancel-task | push | send | open) words+=' --no-block' ;;
        interrupt) words+=' --while-connected --no-block' ;;
        terminate) words+=' --remove --no-block' ;;
        restart) words+=' --background --setenv' ;;
        enable | disable) words+=' --now --config' ;;
        receipts) words+=' --lines --since' ;;
        log) words+=' --follow --lines --since' ;;
        run) words+=' --property --name --protocol --keep --keep-children --quiet' ;;
        mcp-config) words+=' --protocol --remove' ;;
        certify) words+=' --property --client --rounds --timeout --only --junit --keep --config' ;;
        top) words+=' --interval --sort --batch --count' ;;
        plot) words+=' --svg --html --perfetto --since --file' ;;
        replay) words+=' --jetsam-order' ;;
        savings) words+=' --file' ;;
        snapshot) words+=' --scene --output' ;;
        watch | status | idle) words+=' --verbose' ;;
        show) words+=' --property --value' ;;
        init) words+=' --config --url-scheme' ;;
        edit) words+=' --config' ;;
        app) words+=' --after --timeout --answer --result' ;;
        esac
    else
        local verbs='list status explain show is-active idle list-timers cat snapshot receipts receipt log watch top plot replay savings switch launch activate background close cancel-task interrupt
            resume terminate restart push send open run mcp-config enable disable pressure init certify edit verify reload reexec doctor app help'
        case $verb in
        '') words=$verbs ;;
        list | status | explain | show | is-active | idle | list-timers | cat | receipts | log | watch | plot | savings | launch | restart | enable | disable) words=$(__greenroomctl_query '' list) ;;
        # Only apps in a state in which the verb changes something.
        activate) words=$(__greenroomctl_query '[!a]*' list) ;;
        background | interrupt) words=$(__greenroomctl_query '*active' list) ;;
        resume) words=$(__greenroomctl_query inactive list) ;;
        terminate) words=$(__greenroomctl_query '[!n]*' list) ;;
        push | open | edit | snapshot | certify | close | cancel-task) ((operands == 0)) && words=$(__greenroomctl_query '' list) ;;
        send)
            case $operands in
            0) words=$(__greenroomctl_query '' list) ;;
            1)
                words='accessory orientation time battery proximity protectedData display screenMode settings locale
                    account memory x-'
                ;;
            esac
            ;;
        receipt) ((operands == 0)) && words=$(__greenroomctl_query '' receipts) ;;
        pressure) words='normal warning critical' ;;
        help) words=$verbs ;;
        app)
            case $operands:$first in
            0:*) words='events wait answer task progress mode scene remaining save restore snapshot status summary idle launch' ;;
            *:events | *:wait) words='openURL didBecomeActive willResignActive willEnterForeground didEnterBackground willTerminate memoryWarning tasksExpiring push wake notification willSuspend didResume scene takeSnapshot takeSceneSnapshot didDiscardScenes withdraw' ;;
            1:idle | 2:mode) words='yes no' ;;
            2:scene) words='window external panel no' ;;
            1:mode) words='audio recording call location accessory processing' ;;
            1:launch) words='app state reason url first summary end endCode' ;;
            1:save | 1:restore | 1:snapshot | [2-9]:task)
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -f -- "$word")
                return
                ;;
            esac
            ;;
        init)
            if ((operands == 1)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$word")
            elif ((operands > 1)); then
                mapfile -t COMPREPLY < <(compgen -f -- "$word")
            fi
            return
            ;;
        verify | mcp-config)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            return
            ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "${words:-}" -- "$word")
}
complete -F _greenroomctl greenroomctl
