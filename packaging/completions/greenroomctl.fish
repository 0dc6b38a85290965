# fish completion for greenroomctl. packaging/check compares it with the program.

function __greenroomctl_query
    set -l words (commandline -opc)
    set -l daemon
    for i in (seq 2 (count $words))
        switch $words[$i]
            case --system --user
                set daemon $words[$i]
            case --runtime
                set -q words[(math $i + 1)]; and set daemon --runtime $words[(math $i + 1)]
            case '--runtime=*'
                set daemon $words[$i]
        end
    end
    command greenroomctl $daemon $argv 2>/dev/null
end

# Apps with their states. With a regular expression, only apps in a state that it matches.
function __greenroomctl_apps
    set -l states (count $argv >/dev/null; and echo $argv[1]; or echo '\S+')
    __greenroomctl_query list | string replace -rf "^(\\S+)\\s+($states)(\\s.*)?\$" '$1\t$2'
end

function __greenroomctl_receipts
    __greenroomctl_query receipts | string replace -r '^\s*(\S+)\s+\S+\s+(\S+).*' '$1\t$2'
end

set -l verbs list status explain show is-active idle list-timers cat snapshot receipts receipt log watch top plot replay savings switch launch activate background close cancel-task interrupt resume \
    terminate restart push send open run mcp-config enable disable pressure init certify edit verify reload reexec doctor app help
set -l none "not __fish_seen_subcommand_from $verbs"

complete -c greenroomctl -f
complete -c greenroomctl -l json -d 'Print one JSON document'
complete -c greenroomctl -l system -d 'Connect to the system daemon'
complete -c greenroomctl -l user -d 'Connect to the user\'s daemon'
complete -c greenroomctl -l runtime -xa '(__fish_complete_directories)' -d 'Connect to the daemon with this runtime folder'
complete -c greenroomctl -s h -l help -d 'Show help'
complete -c greenroomctl -n $none -l version -d 'Show the version'

complete -c greenroomctl -n $none -a list -d 'List all apps'
complete -c greenroomctl -n $none -a status -d 'Show an app in detail, or the daemon'
complete -c greenroomctl -n $none -a explain -d 'Show why an app is awake or not, and what it may use'
complete -c greenroomctl -n $none -a show -d 'Show properties as KEY=VALUE'
complete -c greenroomctl -n $none -a is-active -d 'Show the states of apps'
complete -c greenroomctl -n $none -a idle -d 'Show why apps are awake, or what would wake them'
complete -c greenroomctl -n $none -a list-timers -d 'List when timers and fetches elapse'
complete -c greenroomctl -n $none -a cat -d 'Show the files of manifests'
complete -c greenroomctl -n $none -a snapshot -d 'Write what an app showed last'
complete -c greenroomctl -n $none -a receipts -d 'List why apps ended'
complete -c greenroomctl -n $none -a receipt -d 'Show one receipt in detail'
complete -c greenroomctl -n $none -a log -d 'Show the journal of an app'
complete -c greenroomctl -n $none -a watch -d 'Print events as they happen'
complete -c greenroomctl -n $none -a top -d 'Show all apps live, and act on one of them'
complete -c greenroomctl -n $none -a plot -d 'Draw what was recorded'
complete -c greenroomctl -n $none -a savings -d 'Show how long apps slept, and what woke them'
complete -c greenroomctl -n $none -a replay -d 'Show which apps were killed for memory, and which others would have been'
complete -c greenroomctl -n $none -a run -d 'Run a command that sleeps while it has nothing to do'
complete -c greenroomctl -n $none -a launch -d 'Launch an app'
complete -c greenroomctl -n $none -a switch -d 'Choose the app to bring to the foreground'
complete -c greenroomctl -n $none -a activate -d 'Bring an app to the foreground'
complete -c greenroomctl -n $none -a background -d 'Move an app to the background'
complete -c greenroomctl -n $none -a interrupt -d 'Begin an interruption'
complete -c greenroomctl -n $none -a resume -d 'End an interruption'
complete -c greenroomctl -n $none -a close -d 'Close a scene of an app'
complete -c greenroomctl -n $none -a cancel-task -d 'Cancel a background task of an app'
complete -c greenroomctl -n $none -a terminate -d 'Terminate an app'
complete -c greenroomctl -n $none -a restart -d 'Terminate apps, then launch them again'
complete -c greenroomctl -n $none -a push -d 'Send a push notification'
complete -c greenroomctl -n $none -a send -d 'Send a notification'
complete -c greenroomctl -n $none -a open -d 'Open a URL'
complete -c greenroomctl -n $none -a enable -d 'Give instances of templates a file'
complete -c greenroomctl -n $none -a disable -d 'Remove the files that enable has made'
complete -c greenroomctl -n $none -a pressure -d 'Show or simulate the memory level'
complete -c greenroomctl -n $none -a init -d 'Create the manifest of a program'
complete -c greenroomctl -n $none -a edit -d 'Edit the manifest of an app, check and load it'
complete -c greenroomctl -n $none -a certify -d 'Take an app through its lifecycle, and report'
complete -c greenroomctl -n $none -a verify -d 'Check manifests'
complete -c greenroomctl -n $none -a reload -d 'Reload all manifests and the configuration'
complete -c greenroomctl -n $none -a reexec -d 'Replace the daemon; apps keep running'
complete -c greenroomctl -n $none -a doctor -d 'Show what the machine lacks'
complete -c greenroomctl -n $none -a app -d 'Inside an app: wait for events, begin tasks, keep the state'
complete -c greenroomctl -n $none -a help -d 'Show help'

complete -c greenroomctl -n '__fish_seen_subcommand_from list status explain show is-active idle list-timers cat snapshot receipts log watch plot savings launch restart close cancel-task push send open enable disable edit certify' \
    -a '(__greenroomctl_apps)'
# Only apps in a state in which the verb changes something.
complete -c greenroomctl -n '__fish_seen_subcommand_from activate' -a '(__greenroomctl_apps "[^a]\S*")'
complete -c greenroomctl -n '__fish_seen_subcommand_from background interrupt' -a '(__greenroomctl_apps "(?:in)?active")'
complete -c greenroomctl -n '__fish_seen_subcommand_from resume' -a '(__greenroomctl_apps inactive)'
complete -c greenroomctl -n '__fish_seen_subcommand_from terminate' -a '(__greenroomctl_apps "[^n]\S*")'
complete -c greenroomctl -n '__fish_seen_subcommand_from receipt' -a '(__greenroomctl_receipts)'
complete -c greenroomctl -n '__fish_seen_subcommand_from help' -a "$verbs"
complete -c greenroomctl -n '__fish_seen_subcommand_from app; and not __fish_seen_subcommand_from events wait answer task progress mode scene remaining save restore snapshot status summary idle launch' \
    -a 'events wait answer task progress mode scene remaining save restore snapshot status summary idle launch'
complete -c greenroomctl -n '__fish_seen_subcommand_from app; and __fish_seen_subcommand_from events wait' \
    -a 'openURL didBecomeActive willResignActive willEnterForeground didEnterBackground willTerminate memoryWarning tasksExpiring push wake notification willSuspend didResume takeSnapshot takeSceneSnapshot didDiscardScenes withdraw'
complete -c greenroomctl -n '__fish_seen_subcommand_from app; and __fish_seen_subcommand_from save restore snapshot task' -F
complete -c greenroomctl -n '__fish_seen_subcommand_from app' -l after -x -d 'The last event that was handled'
complete -c greenroomctl -n '__fish_seen_subcommand_from app' -l timeout -x -d 'Give up after this time'
complete -c greenroomctl -n '__fish_seen_subcommand_from app' -l answer -x -d 'Answer this event once the task is open'
complete -c greenroomctl -n '__fish_seen_subcommand_from app' -l result -x -a 'new-data no-data failed' -d 'Of a push or wake'
complete -c greenroomctl -n '__fish_seen_subcommand_from snapshot' -s o -l output -r -F -d 'Write it to this file'
complete -c greenroomctl -n '__fish_seen_subcommand_from init' -l url-scheme -x -d 'Open URLs of this scheme'
complete -c greenroomctl -n '__fish_seen_subcommand_from verify init' -F
complete -c greenroomctl -n '__fish_seen_subcommand_from pressure' -a 'normal warning critical'
complete -c greenroomctl -n '__fish_seen_subcommand_from send' \
    -a 'accessory orientation time battery proximity protectedData display screenMode settings locale account memory x-'
complete -c greenroomctl -n '__fish_seen_subcommand_from launch restart' -l background -d 'Launch into the background'
complete -c greenroomctl -n '__fish_seen_subcommand_from launch restart' -s E -l setenv -x -d 'Set a variable for this launch' -a '(set -nx)='
complete -c greenroomctl -n '__fish_seen_subcommand_from enable disable' -l now -d 'Launch or terminate the instances, too'
complete -c greenroomctl -n '__fish_seen_subcommand_from launch' -l url -x -d 'URL to open'
complete -c greenroomctl -n '__fish_seen_subcommand_from launch' -l reason -x -d 'Launch reason' \
    -a 'user url push fetch socket timer accessory location relaunch'
complete -c greenroomctl -n '__fish_seen_subcommand_from activate background' -l scene -x -d 'Move this scene alone'
complete -c greenroomctl -n '__fish_seen_subcommand_from snapshot close' -l scene -x -d 'Of this scene'
complete -c greenroomctl -n '__fish_seen_subcommand_from list' -l scenes -d 'List scenes'
complete -c greenroomctl -n '__fish_seen_subcommand_from list' -l clients -d 'List clients of run'
complete -c greenroomctl -n '__fish_seen_subcommand_from interrupt' -l while-connected -d 'End the interruption with this program'
complete -c greenroomctl -n '__fish_seen_subcommand_from terminate' -l remove -d 'Kill at once, drop the restoration state'
complete -c greenroomctl -n '__fish_seen_subcommand_from list' -l state -x -d 'Show only apps in this state' \
    -a 'active inactive launching background suspended terminating notRunning'
complete -c greenroomctl -n '__fish_seen_subcommand_from list' -l sort -x -d 'Sort by' -a 'name state memory since'
complete -c greenroomctl -n '__fish_seen_subcommand_from list' -l full -d 'Cut, wrap and leave out nothing'
complete -c greenroomctl -n '__fish_seen_subcommand_from receipts log' -s n -l lines -x -d 'Show only the last N'
complete -c greenroomctl -n '__fish_seen_subcommand_from log' -s f -l follow -d 'Print new entries as they arrive'
complete -c greenroomctl -n '__fish_seen_subcommand_from status idle' -s v -l verbose -d 'Show details'
complete -c greenroomctl -n $none -a mcp-config -d 'Put run before the servers of an MCP client'
complete -c greenroomctl -n '__fish_seen_subcommand_from mcp-config' -F
complete -c greenroomctl -n '__fish_seen_subcommand_from mcp-config' -l remove -d 'Take the prefix out again'
complete -c greenroomctl -n '__fish_seen_subcommand_from run' -s p -l property -x -d 'Set a setting of greenroom.app(5)'
complete -c greenroomctl -n '__fish_seen_subcommand_from run' -l name -x -d 'The app is run@NAME'
complete -c greenroomctl -n '__fish_seen_subcommand_from run mcp-config' -l protocol -x -a 'jsonrpc mcp' -d 'What the command reads and writes'
complete -c greenroomctl -n '__fish_seen_subcommand_from run' -l keep -d 'Create a manifest first'
complete -c greenroomctl -n '__fish_seen_subcommand_from run' -l keep-children -d 'What it leaves behind continues'
complete -c greenroomctl -n '__fish_seen_subcommand_from certify' -s p -l property -x -d 'A setting of the command: KEY=VALUE'
complete -c greenroomctl -n '__fish_seen_subcommand_from certify' -l client -x -a '(__fish_complete_command)' -d 'Make the requests with this command'
complete -c greenroomctl -n '__fish_seen_subcommand_from certify' -l rounds -x -d 'Suspend the app so often'
complete -c greenroomctl -n '__fish_seen_subcommand_from certify' -l timeout -x -d 'For an answer of the client'
complete -c greenroomctl -n '__fish_seen_subcommand_from certify' -l only -x \
    -a 'launch interruption background suspend push fetch timer url activate notification system-events lock memory-warning scenes load kill reexec daemon-kill terminate' \
    -d 'Take only these steps'
complete -c greenroomctl -n '__fish_seen_subcommand_from certify' -l junit -r -F -d 'Write the report to this file'
complete -c greenroomctl -n '__fish_seen_subcommand_from certify' -l keep -d 'Keep the log of the daemon'
complete -c greenroomctl -n '__fish_seen_subcommand_from run' -l quiet -d 'Do not warn'
complete -c greenroomctl -n '__fish_seen_subcommand_from top' -l interval -x -d 'Ask for sizes and counters this often'
complete -c greenroomctl -n '__fish_seen_subcommand_from top' -l sort -x -a 'state name memory resident swapped saved cpu wakes left' -d 'Sort by'
complete -c greenroomctl -n '__fish_seen_subcommand_from top' -l batch -d 'Print a table instead of a screen'
complete -c greenroomctl -n '__fish_seen_subcommand_from top' -l count -x -d 'Print so many tables'
complete -c greenroomctl -n '__fish_seen_subcommand_from watch' -s v -l verbose -d 'Print deadlines that start and are met'
complete -c greenroomctl -n '__fish_seen_subcommand_from receipts log plot' -l since -x -a 'today yesterday now -1h' -d 'Show only those since then'
complete -c greenroomctl -n '__fish_seen_subcommand_from plot' -l svg -d 'A picture'
complete -c greenroomctl -n '__fish_seen_subcommand_from plot' -l html -d 'A page with zoom'
complete -c greenroomctl -n '__fish_seen_subcommand_from plot' -l perfetto -d 'A trace for ui.perfetto.dev'
complete -c greenroomctl -n '__fish_seen_subcommand_from plot savings' -l file -rF -d 'A file of the recording, or a folder of them'
complete -c greenroomctl -n '__fish_seen_subcommand_from replay' -F
complete -c greenroomctl -n '__fish_seen_subcommand_from replay' -l jetsam-order -x -a 'largest lru balanced' -d 'The other order'
complete -c greenroomctl -n '__fish_seen_subcommand_from launch activate background close cancel-task interrupt resume terminate push send open' \
    -l no-block -d 'Do not wait for the result'
complete -c greenroomctl -n '__fish_seen_subcommand_from show' -s p -l property -x -d 'Show only this property' \
    -a 'id name state pid since memoryBytes residentBytes swappedBytes savedBytes tasks wakes awake suspendsInSeconds trafficWakes lastInput
    watch sockets timers connectionsWaitingSeconds unloadsInSeconds shortestWaitSeconds deadline foreground launches interruptions
    backgroundTimeRemainingSeconds launchPostponedSeconds launchWaitingSeconds memoryAwaitedBytes
    backgroundTimeLastHourSeconds backgroundTimePerHourSeconds statusText suspendProblem lastReceipt error files template transient needsReload'
complete -c greenroomctl -n '__fish_seen_subcommand_from show' -l value -d 'Show only the values'
complete -c greenroomctl -n '__fish_seen_subcommand_from init certify enable disable' -l config -xa '(__fish_complete_directories)' -d 'Use the manifests in this folder'
