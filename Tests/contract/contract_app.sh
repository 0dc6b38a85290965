#!/bin/sh
# contract_app.sh GREENROOMCTL: the app of the contract tests in shell. contract_app.py is the same app in Python.
greenroomctl=$1
count=0

# Every action is visible in the transcript, as a summary.
say() {
    problem=$("$greenroomctl" app summary "$1" 2>&1) || "$greenroomctl" app summary "refused: ${problem#greenroomctl: }"
}

background() {
    count=$((count + 1))
    problem=$(printf %s "$count" | "$greenroomctl" app save - 2>&1) || say "not saved: ${problem#greenroomctl: }"
}

# push TEXT: handles a push, and sets the result of its answer.
push() {
    result=new-data
    case $1 in
    task)
        problem=$("$greenroomctl" app task push -- "$greenroomctl" app summary task 2>&1) || {
            say "no task: ${problem#greenroomctl: }"
            result=failed
        }
        ;;
    progress)
        "$greenroomctl" app task push -- sh -c '"$0" app progress push 0 10 Copying && "$0" app summary half &&
            "$0" app progress push 10 10' "$greenroomctl"
        ;;
    mode)
        if problem=$("$greenroomctl" app mode audio yes 2>&1); then
            say mode
            "$greenroomctl" app mode audio no
        else
            say "no mode: ${problem#greenroomctl: }"
            result=failed
        fi
        ;;
    scene)
        if problem=$("$greenroomctl" app scene tools panel 2>&1); then
            say scene
            "$greenroomctl" app scene tools no
        else
            say "no scene: ${problem#greenroomctl: }"
            result=failed
        fi
        ;;
    large) say "$(printf %0100000d 0 | tr 0 x)" ;;
    none) result=no-data ;;
    esac
}

if state=$("$greenroomctl" app restore 2>/dev/null); then
    count=$state
    say "restored $count"
fi

# The trap runs at once if the shell is in `wait`, and otherwise after the end of the pipeline. So the loop is in the background.
trap 'say "terminate SIGTERM"; kill "$loop"; wait "$loop" 2>/dev/null; exit 0' TERM
"$greenroomctl" app events didBecomeActive didDiscardScenes didEnterBackground didResume memoryWarning notification openURL push scene takeSceneSnapshot takeSnapshot \
    tasksExpiring wake willEnterForeground willResignActive willSuspend willTerminate withdraw |
    while read -r serial kind first rest; do
        case $kind in
        didBecomeActive) say "active ${first:-launch}" ;;
        willResignActive) say "inactive $first" ;;
        willEnterForeground) say foreground ;;
        didEnterBackground)
            background
            "$greenroomctl" app answer "$serial"
            ;;
        willTerminate)
            say "terminate $rest"
            "$greenroomctl" app answer "$serial"
            break
            ;;
        memoryWarning) say "memory ${first:-warning}" ;;
        tasksExpiring) say "expiring $rest" ;;
        push)
            push "$rest"
            "$greenroomctl" app answer "$serial" --result "$result"
            ;;
        wake)
            say "wake $rest"
            result=new-data
            [ "$rest" != fetch ] || result=failed
            "$greenroomctl" app answer "$serial" --result "$result"
            ;;
        openURL) say "url $first" ;;
        notification) say "notification $first $rest" ;;
        scene) say "scene $first $rest" ;;
        takeSnapshot)
            printf 'page %s' "$count" | "$greenroomctl" app snapshot - text/plain
            "$greenroomctl" app answer "$serial"
            ;;
        takeSceneSnapshot)
            printf %s "$first" | "$greenroomctl" app snapshot - text/plain "$first"
            "$greenroomctl" app answer "$serial"
            ;;
        didDiscardScenes) say "discarded $first${rest:+ $rest}" ;;
        withdraw)
            say withdraw
            "$greenroomctl" app answer "$serial"
            ;;
        willSuspend) say suspend ;;
        didResume) say "resume $first${rest:+ $rest}" ;;
        esac
    done &
loop=$!
wait "$loop"
