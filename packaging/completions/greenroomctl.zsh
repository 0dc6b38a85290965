#compdef greenroomctl
# zsh completion for greenroomctl. packaging/check compares it with the program.

_greenroomctl_daemon() {
    local -a daemon
    (( ${+opt_args[--runtime]} )) && daemon=(--runtime $opt_args[--runtime])
    (( ${+opt_args[--system]} )) && daemon=(--system)
    (( ${+opt_args[--user]} )) && daemon=(--user)
    command greenroomctl $daemon "$@" 2>/dev/null
}

# Apps with their states. With a pattern, only apps in a state that it matches.
_greenroomctl_apps() {
    local -a apps
    local states=${1:-*}
    apps=(${(f)"$(_greenroomctl_daemon list | while read -r id state _; do
        [[ $state == ${~states} ]] && print -r -- "$id:$state"
    done)"})
    _describe 'app' apps
}

# Only apps in a state in which the verb changes something.
_greenroomctl_inactive() { _greenroomctl_apps 'inactive' }
_greenroomctl_foreground() { _greenroomctl_apps '*active' }
_greenroomctl_not_active() { _greenroomctl_apps '[^a]*' }
_greenroomctl_running() { _greenroomctl_apps '[^n]*' }

_greenroomctl_receipts() {
    local -a receipts
    receipts=(${(f)"$(_greenroomctl_daemon receipts | while read -r id time app _; do print -r -- "$id:$app"; done)"})
    _describe -V 'receipt' receipts
}

_greenroomctl() {
    local curcontext=$curcontext state line
    local -A opt_args
    local -a common verbs block since setenv
    local keys='id name state pid since memoryBytes residentBytes swappedBytes savedBytes tasks wakes awake suspendsInSeconds trafficWakes
        lastInput watch sockets timers connectionsWaitingSeconds unloadsInSeconds shortestWaitSeconds deadline foreground launches interruptions
        backgroundTimeRemainingSeconds launchPostponedSeconds launchWaitingSeconds memoryAwaitedBytes
        backgroundTimeLastHourSeconds backgroundTimePerHourSeconds statusText suspendProblem lastReceipt error files template transient needsReload'
    block=('--no-block[do not wait for the result]')
    setenv=('*'{-E,--setenv=}'[set a variable for this launch]:variable:_parameters -g "*export*" -qS=')
    since=('--since=[show only those since then]:time:(today yesterday now -1h)')
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
        'explain:show why an app is awake or not, and what it may use'
        'show:show properties as KEY=VALUE'
        'is-active:show the states of apps'
        'idle:show why apps are awake, or what would wake them'
        'list-timers:list when timers and fetches elapse'
        'cat:show the files of manifests'
        'snapshot:write what an app showed last'
        'receipts:list why apps ended'
        'receipt:show one receipt in detail'
        'log:show the journal of an app'
        'watch:print events as they happen'
        'top:show all apps live, and act on one of them'
        'plot:draw what was recorded'
        'savings:show how long apps slept, and what woke them'
        'replay:show which apps were killed for memory, and which others would have been'
        'launch:launch an app'
        'switch:choose the app to bring to the foreground'
        'activate:bring an app to the foreground'
        'background:move an app to the background'
        'interrupt:begin an interruption'
        'resume:end an interruption'
        'close:close a scene of an app'
        'cancel-task:cancel a background task of an app'
        'terminate:terminate an app'
        'restart:terminate apps, then launch them again'
        'push:send a push notification'
        'send:send a notification'
        'open:open a URL'
        'run:run a command that sleeps while it has nothing to do'
        'mcp-config:put run before the servers of an MCP client'
        'enable:give instances of templates a file'
        'disable:remove the files that enable has made'
        'pressure:show or simulate the memory level'
        'init:create the manifest of a program'
        'edit:edit the manifest of an app, check and load it'
        'certify:take an app through its lifecycle, and report'
        'verify:check manifests'
        'reload:reload all manifests and the configuration'
        'reexec:replace the daemon; apps keep running'
        'doctor:show what the machine lacks, what that costs, and what mends it'
        'app:inside an app, wait for events, begin tasks, keep the state'
        'help:show help'
    )
    _arguments -C $common '(- *)--version[show the version]' '1:verb:->verb' '*::operand:->operands' && return
    case $state in
    verb) _describe 'verb' verbs ;;
    operands)
        case $line[1] in
        list)
            _arguments $common '--state=[show only apps in this state]:state:(active inactive launching background suspended terminating notRunning)' \
                '--sort=[sort by]:key:(name state memory since)' '--scenes[list scenes]' '--clients[list clients of run]' '--full[cut, wrap and leave out nothing]' '*:app:_greenroomctl_apps'
            ;;
        status | idle) _arguments $common '(-v --verbose)'{-v,--verbose}'[show details]' '*:app:_greenroomctl_apps' ;;
        explain | is-active | list-timers | cat) _arguments $common '*:app:_greenroomctl_apps' ;;
        show)
            _arguments $common '*'{-p,--property=}"[show only this property]:key:($keys)" '--value[show only the values]' \
                '*:app:_greenroomctl_apps'
            ;;
        watch) _arguments $common '(-v --verbose)'{-v,--verbose}'[print deadlines that start and are met]' '*:app:_greenroomctl_apps' ;;
        top)
            _arguments $common '--interval=[ask for sizes and counters this often]:time' \
                '--sort=[sort by]:key:(state name memory resident swapped saved cpu wakes left)' \
                '--batch[print a table instead of a screen]' '--count=[print so many tables]:number'
            ;;
        mcp-config)
            _arguments $common '--protocol=[what the servers read and write]:protocol:(jsonrpc mcp)' \
                '--remove[take the prefix out again]' '*:file:_files'
            ;;
        run)
            _arguments $common '*'{-p,--property=}'[set a setting of greenroom.app(5)]:KEY=VALUE' '--name=[the app is run@NAME]:name' \
                '--protocol=[what the command reads and writes]:protocol:(jsonrpc mcp)' '--keep[create a manifest first]' '--keep-children[what it leaves behind continues]' '--quiet[do not warn]' '*::command:_normal'
            ;;
        receipts)
            _arguments $common '(-n --lines)'{-n,--lines=}'[show only the last N]:number' $since '*:app:_greenroomctl_apps'
            ;;
        receipt) _arguments $common '1:receipt:_greenroomctl_receipts' ;;
        log)
            _arguments $common '(-f --follow)'{-f,--follow}'[print new entries as they arrive]' \
                '(-n --lines)'{-n,--lines=}'[show only the last N]:number' $since '*:app:_greenroomctl_apps'
            ;;
        plot)
            _arguments $common '--svg[a picture]' '--html[a page with zoom]' '--perfetto[a trace for ui.perfetto.dev]' $since \
                '--file=[a file of the recording, or a folder of them]:file:_files' '*:app:_greenroomctl_apps'
            ;;
        savings) _arguments $common '--file=[a file of the recording, or a folder of them]:file:_files' '*:app:_greenroomctl_apps' ;;
        replay) _arguments $common '--jetsam-order=[the other order]:order:(largest lru balanced)' '*:file:_files' ;;
        launch)
            _arguments $common $block $setenv '--background[launch into the background]' '--url=[URL to open]:url:_urls' \
                '--reason=[launch reason]:reason:(user url push fetch socket timer accessory location relaunch)' \
                '*:app:_greenroomctl_apps'
            ;;
        restart) _arguments $common $setenv '--background[launch into the background]' '*:app:_greenroomctl_apps' ;;
        enable | disable)
            _arguments $common '--now[launch or terminate the instances, too]' \
                '--config=[use the links in this folder]:folder:_files -/' '*:app:_greenroomctl_apps'
            ;;
        interrupt)
            _arguments $common $block '--while-connected[end the interruption with this program]' \
                '*:app:_greenroomctl_foreground'
            ;;
        activate) _arguments $common $block '--scene=[move this scene alone]:scene' '*:app:_greenroomctl_not_active' ;;
        background) _arguments $common $block '--scene=[move this scene alone]:scene' '*:app:_greenroomctl_foreground' ;;
        close) _arguments $common $block '--scene=[this scene]:scene' '1:app:_greenroomctl_apps' ;;
        cancel-task) _arguments $common $block '1:app:_greenroomctl_apps' '2:task' ;;
        resume) _arguments $common $block '*:app:_greenroomctl_inactive' ;;
        terminate)
            _arguments $common $block '--remove[kill at once, drop the restoration state]' '*:app:_greenroomctl_running'
            ;;
        open) _arguments $common $block '1:app or URL:_greenroomctl_apps' '2:URL:_urls' ;;
        push) _arguments $common $block '1:app:_greenroomctl_apps' '2:payload' ;;
        send)
            _arguments $common $block '1:app:_greenroomctl_apps' '3:payload' \
                '2:kind:(accessory orientation time battery proximity protectedData display screenMode settings locale account memory x-)'
            ;;
        init)
            _arguments $common '--config=[create the manifest in this folder]:folder:_files -/' '1:name' \
                '*--url-scheme=[open URLs of this scheme]:scheme' \
                '2:command:_command_names -e' '*:argument:_files'
            ;;
        app)
            _arguments $common '--after=[the last event that was handled]:serial' '--timeout=[give up after this time]:time' \
                '--answer=[answer this event once the task is open]:serial' \
                '--result=[the result of a push or wake]:result:(new-data no-data failed)' \
                '1:command:(events wait answer task progress mode scene remaining save restore snapshot status summary idle launch)' \
                '*:argument:{ case $line[1] in
                    events | wait) compadd openURL didBecomeActive willResignActive willEnterForeground didEnterBackground willTerminate memoryWarning tasksExpiring push wake notification willSuspend didResume takeSnapshot takeSceneSnapshot didDiscardScenes withdraw ;;
                    idle) compadd yes no ;;
                    scene) compadd window external panel no ;;
                    mode) compadd audio recording call location accessory processing yes no ;;
                    launch) compadd app state reason url first summary end endCode ;;
                    save | restore | snapshot | task) _files ;;
                    esac }'
            ;;
        snapshot) _arguments $common '--scene=[of this scene]:scene' '(-o --output)'{-o,--output=}'[write it to this file]:file:_files' '1:app:_greenroomctl_apps' ;;
        edit) _arguments $common '--config=[use the manifest in this folder]:folder:_files -/' '1:app:_greenroomctl_apps' ;;
        pressure) _arguments $common '1:level:(normal warning critical)' ;;
        certify)
            _arguments $common '*'{-p,--property=}'[set a setting of the command]:KEY=VALUE' '--junit=[write the report to this file]:file:_files' \
                '--client=[make the requests with this command]:command:_cmdstring' '--rounds=[suspend the app so often]:number' \
                '--timeout=[for an answer of the client]:time' \
                '*--only=[take only these steps]:step:_values -s , step launch interruption background suspend push fetch timer url activate notification system-events lock memory-warning scenes load kill reexec daemon-kill terminate' \
                '--keep[keep the log of the daemon]' '--config=[look for the manifest here]:folder:_files -/' '1:app:_greenroomctl_apps' '*::command:_normal' ;;
        verify) _arguments $common '*:file:_files' ;;
        reload | reexec | doctor) _arguments $common ;;
        help) _describe 'verb' verbs ;;
        esac
        ;;
    esac
}

_greenroomctl "$@"
