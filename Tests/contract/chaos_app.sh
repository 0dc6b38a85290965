#!/bin/sh
# chaos_app.sh GREENROOMCTL: the app of ContractChaosTests in shell. It writes a line to the file CHAOS_LOG for each event that it
# has handled.
greenroomctl=$1
echo launch >>"$CHAOS_LOG"
"$greenroomctl" app events didBecomeActive willResignActive willEnterForeground didEnterBackground push openURL |
    while read -r serial kind rest; do
        case $kind in
        didBecomeActive) echo "active $rest" ;;
        willResignActive) echo "inactive $rest" ;;
        willEnterForeground) echo foreground ;;
        openURL) echo "url $rest" ;;
        didEnterBackground)
            echo "$serial" | "$greenroomctl" app save -
            echo background
            "$greenroomctl" app answer "$serial"
            ;;
        push)
            # The number of the push, then its text.
            echo "push ${rest#* }"
            "$greenroomctl" app answer "$serial"
            ;;
        esac >>"$CHAOS_LOG"
    done
