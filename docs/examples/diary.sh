#!/bin/sh
# diary.sh: a diary. URLs and pushes write into it: greenroomctl open diary diary:It-rained.
# A shell script is an app with `greenroomctl app events`, which prints a line for each event.
file=$STATE_DIRECTORY/diary.txt
entries=$(greenroomctl app restore 2>/dev/null) || entries=0

add() {
    printf '%s %s\n' "$(date '+%F %T')" "$1" >>"$file"
    entries=$((entries + 1))
    greenroomctl app status "$entries entries, the last: $1"
}

greenroomctl app events openURL didBecomeActive didEnterBackground push willTerminate |
    while read -r serial kind rest; do
        case $kind in
        openURL) add "${rest#diary:}" ;;
        didBecomeActive) greenroomctl app status "$entries entries ($rest)" ;;
        push)
            # The number of the push, then its text.
            add "${rest#* }"
            greenroomctl app answer "$serial" --result new-data
            ;;
        didEnterBackground)
            echo "$entries" | greenroomctl app save -
            # The copy may take longer than the 5s for the answer, which is given when the task has begun.
            greenroomctl app task copy --answer "$serial" -- cp "$file" "$file.copy" &
            ;;
        willTerminate)
            greenroomctl app summary "$entries entries"
            greenroomctl app answer "$serial"
            ;;
        esac
    done
