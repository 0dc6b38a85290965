#compdef greenroomctl
# zsh completion for greenroomctl. packaging/check holds it to what the program knows.

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
        '--json[one JSON document]'
        '(--user --runtime)--system[the daemon of the system]'
        "(--system --runtime)--user[one's own daemon]"
        '(--system --user)--runtime=[the daemon that has this runtime folder]:folder:_files -/'
        '(- *)'{-h,--help}'[show help]'
    )
    verbs=(
        'list:all apps, a line each'
        'status:one app in full; without APP, the house'
        'receipts:why apps ended'
        'receipt:one end in full'
        'log:the journal of an app'
        'watch:every change as it happens'
        'launch:launches an app'
        'activate:brings an app to the foreground'
        'background:sends an app to the background'
        'interrupt:an interruption begins'
        'resume:an interruption ends'
        'terminate:tells an app to end'
        'push:wakes or launches an app with a push'
        'send:a notification'
        'pressure:the state of memory; simulates a level'
        'verify:checks manifests'
        'reload:reads all manifests anew'
        'help:this, or more about one verb'
    )
    _arguments -C $common '(- *)--version[show the version]' '1:verb:->verb' '*::operand:->operands' && return
    case $state in
    verb) _describe 'verb' verbs ;;
    operands)
        case $line[1] in
        status) _arguments $common '*:app:_greenroomctl_apps' ;;
        watch) _arguments $common '(-v --verbose)'{-v,--verbose}'[also deadlines]' '*:app:_greenroomctl_apps' ;;
        receipts) _arguments $common '(-n --lines)'{-n,--lines=}'[only the last]:number' '1:app:_greenroomctl_apps' ;;
        receipt) _arguments $common '1:receipt:_greenroomctl_receipts' ;;
        log)
            _arguments $common '(-f --follow)'{-f,--follow}'[as it comes]' \
                '(-n --lines)'{-n,--lines=}'[only the last]:number' '1:app:_greenroomctl_apps'
            ;;
        launch)
            _arguments $common '--background[into the background]' '--url=[what it is to open]:url:_urls' \
                '--reason=[what the app is told]:reason:(user url push fetch socket timer accessory location relaunch)' \
                '1:app:_greenroomctl_apps'
            ;;
        activate | background | interrupt | resume) _arguments $common '1:app:_greenroomctl_apps' ;;
        terminate) _arguments $common '--remove[at once, as its removal]' '1:app:_greenroomctl_apps' ;;
        push) _arguments $common '1:app:_greenroomctl_apps' '2:payload' ;;
        send)
            _arguments $common '1:app:_greenroomctl_apps' '3:payload' \
                '2:kind:(accessory orientation time battery proximity protectedData display screenMode settings locale account memory x-)'
            ;;
        pressure) _arguments $common '1:level:(normal warning critical)' ;;
        verify) _arguments $common '*:file:_files' ;;
        list | reload) _arguments $common ;;
        help) _describe 'verb' verbs ;;
        esac
        ;;
    esac
}

_greenroomctl "$@"
