#compdef greenroomctl
# zsh completion for greenroomctl. packaging/check compares it with the program.

_greenroomctl_daemon() {
    local -a daemon
    (( ${+opt_args[--runtime]} )) && daemon=(--runtime $opt_args[--runtime])
    (( ${+opt_args[--system]} )) && daemon=(--system)
    (( ${+opt_args[--user]} )) && daemon=(--user)
    command greenroomctl $daemon "$@" 2>/dev/null
}

_greenroomctl_apps() {
    local -a apps
    apps=(${(f)"$(_greenroomctl_daemon list | while read -r id state _; do print -r -- "$id:$state"; done)"})
    _describe 'app' apps
}

_greenroomctl_receipts() {
    local -a receipts
    receipts=(${(f)"$(_greenroomctl_daemon receipts | while read -r id time app _; do print -r -- "$id:$app"; done)"})
    _describe -V 'receipt' receipts
}

_greenroomctl() {
    local curcontext=$curcontext state line
    local -A opt_args
    local -a common verbs
    common=(
        '--json[print one JSON document]'
        '(--user --runtime)--system[connect to the system daemon]'
        "(--system --runtime)--user[connect to the user's daemon]"
        '(--system --user)--runtime=[connect to the daemon with this runtime folder]:folder:_files -/'
        '(- *)'{-h,--help}'[show help]'
    )
    verbs=(
        'list:list all apps'
        'status:show an app in detail, or the daemon'
        'receipts:list why apps ended'
        'receipt:show one receipt in detail'
        'log:show the journal of an app'
        'watch:print events as they happen'
        'launch:launch an app'
        'activate:bring an app to the foreground'
        'background:move an app to the background'
        'interrupt:begin an interruption'
        'resume:end an interruption'
        'terminate:terminate an app'
        'push:send a push notification'
        'send:send a notification'
        'pressure:show or simulate the memory level'
        'verify:check manifests'
        'reload:reload all manifests and the configuration'
        'reexec:replace the daemon; apps keep running'
        'help:show help'
    )
    _arguments -C $common '(- *)--version[show the version]' '1:verb:->verb' '*::operand:->operands' && return
    case $state in
    verb) _describe 'verb' verbs ;;
    operands)
        case $line[1] in
        status) _arguments $common '*:app:_greenroomctl_apps' ;;
        watch) _arguments $common '(-v --verbose)'{-v,--verbose}'[print deadlines that start and are met]' '*:app:_greenroomctl_apps' ;;
        receipts) _arguments $common '(-n --lines)'{-n,--lines=}'[show only the last N]:number' '1:app:_greenroomctl_apps' ;;
        receipt) _arguments $common '1:receipt:_greenroomctl_receipts' ;;
        log)
            _arguments $common '(-f --follow)'{-f,--follow}'[print new entries as they arrive]' \
                '(-n --lines)'{-n,--lines=}'[show only the last N]:number' '1:app:_greenroomctl_apps'
            ;;
        launch)
            _arguments $common '--background[launch into the background]' '--url=[URL to open]:url:_urls' \
                '--reason=[launch reason]:reason:(user url push fetch socket timer accessory location relaunch)' \
                '1:app:_greenroomctl_apps'
            ;;
        interrupt)
            _arguments $common '--while-connected[end the interruption with this program]' '1:app:_greenroomctl_apps'
            ;;
        activate | background | resume) _arguments $common '1:app:_greenroomctl_apps' ;;
        terminate) _arguments $common '--remove[kill at once, drop the restoration state]' '1:app:_greenroomctl_apps' ;;
        push) _arguments $common '1:app:_greenroomctl_apps' '2:payload' ;;
        send)
            _arguments $common '1:app:_greenroomctl_apps' '3:payload' \
                '2:kind:(accessory orientation time battery proximity protectedData display screenMode settings locale account memory x-)'
            ;;
        pressure) _arguments $common '1:level:(normal warning critical)' ;;
        verify) _arguments $common '*:file:_files' ;;
        list | reload | reexec) _arguments $common ;;
        help) _describe 'verb' verbs ;;
        esac
        ;;
    esac
}

_greenroomctl "$@"
