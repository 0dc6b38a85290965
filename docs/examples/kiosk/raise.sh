#!/bin/sh
# raise.sh: brings the window of the app that has become active to the front. sway.py does more.
greenroomctl --json watch | sed -un 's/.*stateChanged.*"app":"\([^"]*\)","state":"active".*/\1/p' | while read -r app; do
    swaymsg "[app_id=\"$app\"] focus"
done
