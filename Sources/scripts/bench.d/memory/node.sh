#!/bin/sh
# node.js with 100 MB of buffers.
set -eu
exec node -e "globalThis.kept = Array.from({ length: 100 }, () => Buffer.alloc(1 << 20, 1));
require('fs').writeFileSync('$1/loaded', ''); setInterval(() => {}, 1e6)"
