# bash completion for greenroomctl. packaging/check compares it with the program.

# Prints the first word of each line of the program's output, from the daemon that the command line selects.
__greenroomctl_query() {
    command greenroomctl "${daemon[@]}" "$@" 2>/dev/null | while read -r word _; do printf '%s\n' "$word"; done
}

_greenroomctl() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb='' operands=0 daemon=() i words
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --runtime) daemon=(--runtime "${COMP_WORDS[++i]}") ;;
        --system | --user) daemon=("${COMP_WORDS[i]}") ;;
        --reason | --url | --lines | -n) ((++i)) ;;
        -*) ;;
        *) if [[ -z $verb ]]; then verb=${COMP_WORDS[i]}; else ((++operands)); fi ;;
        esac
    done
    case $before in
    --runtime)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        return
        ;;
    --reason)
        mapfile -t COMPREPLY < <(compgen -W 'user url push fetch socket timer accessory location relaunch' -- "$word")
        return
        ;;
    --url | --lines | -n) return ;;
    esac
    if [[ $word == -* ]]; then
        words='--json --system --user --runtime --help'
        case $verb in
        '') words+=' --version' ;;
        launch) words+=' --background --reason --url' ;;
        interrupt) words+=' --while-connected' ;;
        terminate) words+=' --remove' ;;
        receipts) words+=' --lines' ;;
        log) words+=' --follow --lines' ;;
        watch) words+=' --verbose' ;;
        esac
    else
        case $verb in
        '')
            words='list status receipts receipt log watch launch activate background interrupt resume terminate push
                send pressure verify reload reexec help'
            ;;
        status | watch) words=$(__greenroomctl_query list) ;;
        receipts | log | launch | activate | background | interrupt | resume | terminate | push)
            ((operands == 0)) && words=$(__greenroomctl_query list)
            ;;
        send)
            case $operands in
            0) words=$(__greenroomctl_query list) ;;
            1)
                words='accessory orientation time battery proximity protectedData display screenMode settings locale
                    account memory x-'
                ;;
            esac
            ;;
        receipt) ((operands == 0)) && words=$(__greenroomctl_query receipts) ;;
        pressure) words='normal warning critical' ;;
        help) words='list status receipts receipt log watch launch activate background interrupt resume terminate push
            send pressure verify reload reexec help' ;;
        verify)
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            return
            ;;
        esac
    fi
    mapfile -t COMPREPLY < <(compgen -W "${words:-}" -- "$word")
}
complete -F _greenroomctl greenroomctl
