#!/bin/sh
# Chromium without a window, with a page that keeps 60 MB. When the page is loaded its title is written to the log.
set -eu
command -v chromium >/dev/null
cat >"$1/page.html" <<'end'
<canvas width=1500 height=1500></canvas>
<script>kept = []; for (let i = 0; i < 60; i++) kept.push(new Uint8Array(1 << 20).fill(i)); console.log("page is loaded")</script>
end
chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr --remote-debugging-port=0 \
    --user-data-dir="$1/profile" "file://$1/page.html" 2>"$1/log" &
until grep -q 'page is loaded' "$1/log"; do sleep 0.2; done
touch "$1/loaded"
wait
