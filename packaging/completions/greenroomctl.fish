# fish completion for greenroomctl. packaging/check holds it to what the program knows.

function __greenroomctl_ask
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

function __greenroomctl_apps
    __greenroomctl_ask list | string replace -r '^(\S+)\s+(\S+).*' '$1\t$2'
end

function __greenroomctl_receipts
    __greenroomctl_ask receipts | string replace -r '^\s*(\S+)\s+\S+\s+(\S+).*' '$1\t$2'
end

set -l verbs list status receipts receipt log watch launch activate background interrupt resume terminate push send \
    pressure verify reload help
set -l none "not __fish_seen_subcommand_from $verbs"

complete -c greenroomctl -f
complete -c greenroomctl -l json -d 'One JSON document'
complete -c greenroomctl -l system -d 'The daemon of the system'
complete -c greenroomctl -l user -d 'One\'s own daemon'
complete -c greenroomctl -l runtime -xa '(__fish_complete_directories)' -d 'The daemon that has this runtime folder'
complete -c greenroomctl -s h -l help -d 'Show help'
complete -c greenroomctl -n $none -l version -d 'Show the version'

complete -c greenroomctl -n $none -a list -d 'All apps, a line each'
complete -c greenroomctl -n $none -a status -d 'One app in full; without APP, the house'
complete -c greenroomctl -n $none -a receipts -d 'Why apps ended'
complete -c greenroomctl -n $none -a receipt -d 'One end in full'
complete -c greenroomctl -n $none -a log -d 'The journal of an app'
complete -c greenroomctl -n $none -a watch -d 'Every change as it happens'
complete -c greenroomctl -n $none -a launch -d 'Launches an app'
complete -c greenroomctl -n $none -a activate -d 'Brings an app to the foreground'
complete -c greenroomctl -n $none -a background -d 'Sends an app to the background'
complete -c greenroomctl -n $none -a interrupt -d 'An interruption begins'
complete -c greenroomctl -n $none -a resume -d 'An interruption ends'
complete -c greenroomctl -n $none -a terminate -d 'Tells an app to end'
complete -c greenroomctl -n $none -a push -d 'Wakes or launches an app with a push'
complete -c greenroomctl -n $none -a send -d 'A notification'
complete -c greenroomctl -n $none -a pressure -d 'The state of memory; simulates a level'
complete -c greenroomctl -n $none -a verify -d 'Checks manifests'
complete -c greenroomctl -n $none -a reload -d 'Reads all manifests anew'
complete -c greenroomctl -n $none -a help -d 'This, or more about one verb'

complete -c greenroomctl -n '__fish_seen_subcommand_from status receipts log watch launch activate background interrupt resume terminate push send' \
    -a '(__greenroomctl_apps)'
complete -c greenroomctl -n '__fish_seen_subcommand_from receipt' -a '(__greenroomctl_receipts)'
complete -c greenroomctl -n '__fish_seen_subcommand_from help' -a "$verbs"
complete -c greenroomctl -n '__fish_seen_subcommand_from verify' -F
complete -c greenroomctl -n '__fish_seen_subcommand_from pressure' -a 'normal warning critical'
complete -c greenroomctl -n '__fish_seen_subcommand_from send' \
    -a 'accessory orientation time battery proximity protectedData display screenMode settings locale account memory x-'
complete -c greenroomctl -n '__fish_seen_subcommand_from launch' -l background -d 'Into the background'
complete -c greenroomctl -n '__fish_seen_subcommand_from launch' -l url -x -d 'What it is to open'
complete -c greenroomctl -n '__fish_seen_subcommand_from launch' -l reason -x -d 'What the app is told' \
    -a 'user url push fetch socket timer accessory location relaunch'
complete -c greenroomctl -n '__fish_seen_subcommand_from terminate' -l remove -d 'At once, as its removal'
complete -c greenroomctl -n '__fish_seen_subcommand_from receipts log' -s n -l lines -x -d 'Only the last'
complete -c greenroomctl -n '__fish_seen_subcommand_from log' -s f -l follow -d 'As it comes'
complete -c greenroomctl -n '__fish_seen_subcommand_from watch' -s v -l verbose -d 'Also deadlines'
