#!/bin/sh
# PostgreSQL with 256 MB of shared buffers, all of them used, and five idle connections. Called as the user postgres.
set -eu
PATH=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1):$PATH
command -v pgbench >/dev/null
initdb -D "$1/data" -A trust >/dev/null
postgres -D "$1/data" -k "$1" -c listen_addresses= -c shared_buffers=256MB >/dev/null 2>&1 &
until psql -h "$1" postgres -c 'select 1' >/dev/null 2>&1; do sleep 0.1; done
pgbench -i -q -s 20 -h "$1" postgres >/dev/null 2>&1
for _ in 1 2 3 4 5; do
    { echo 'set enable_seqscan = off; select sum(abalance) from pgbench_accounts where aid > 0; select 1 as done;'; exec sleep 100000; } |
        psql -X -q -t -h "$1" postgres >>"$1/answers" &
done
until [ "$(grep -c ' 1$' "$1/answers" 2>/dev/null)" = 5 ]; do sleep 0.1; done
touch "$1/loaded"
wait
