#!/bin/sh
# redis with two million keys.
set -eu
command -v redis-server >/dev/null
redis-server --port 0 --unixsocket "$1/socket" --save '' --enable-debug-command yes >/dev/null &
until [ "$(redis-cli -s "$1/socket" debug populate 2000000 k 100 2>/dev/null)" = OK ]; do sleep 0.1; done
touch "$1/loaded"
wait
