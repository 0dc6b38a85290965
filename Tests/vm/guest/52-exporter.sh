# The metrics of the installed daemon, served by the unit of greenroom-exporter with all of its restrictions.
export DEBIAN_FRONTEND=noninteractive
socket=/run/greenroom-exporter/metrics
# scrape WHERE [CODE]: the answer to a request for /metrics, over a Unix socket (a path) or TCP (a port), as USER if that is set.
scrape() {
    runuser -u "${user:-root}" -- python3 - "$1" <<'END'
import http.client, socket, sys
where = sys.argv[1]
connection = http.client.HTTPConnection("127.0.0.1", int(where) if where.isdigit() else 80, timeout=30)
if not where.isdigit():
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(where)
connection.request("GET", "/metrics")
answer = connection.getresponse()
print(answer.status, answer.getheader("Content-Type"))
print(answer.read().decode())
END
}
# metric LINE [WHERE]: succeeds if the line is in the answer.
metric() { scrape "${2:-$socket}" | grep -qxF -- "$1"; }

check "the package installs with packages of Debian" dpkg -i ./libmicrohttpd12_*.deb ./greenroom-exporter.deb
check "the installation does not start the service" fails systemctl is-active greenroom-exporter
manifest scraped "ready"
ctl reload >/dev/null
check "an app is suspended" background scraped
check "the service starts" systemctl enable --now greenroom-exporter
check "it reports the daemon as up" wait_for 30 metric "greenroom_up 1"
check "and the suspended app" wait_for 30 metric 'greenroom_apps{state="suspended"} '"$(ctl list | awk '$2 == "suspended"' | wc -l)"
check "any user may read them" eval 'user=nobody scrape $socket | grep -q "^200 text/plain"'
check "no port is open" fails eval 'ss -Hltn | grep -q :9187'
mkdir -p /etc/greenroom/greenroom.conf.d
printf '%s\n' '[Manager]' MetricsListen=127.0.0.1:9187 >/etc/greenroom/greenroom.conf.d/metrics.conf
ctl reload >/dev/null
check "after a reload with MetricsListen= it serves them at that address, too" wait_for 60 metric "greenroom_up 1" 9187
pid=$(property greenroom-exporter MainPID)
check "an upgrade of the package starts it again" dpkg -i ./greenroom-exporter.deb
check "with the new program" eval 'wait_for 30 systemctl is-active greenroom-exporter && [ "$(property greenroom-exporter MainPID)" != "$pid" ]'
systemctl restart greenroomd
check "after a restart of the daemon it is connected again" wait_for 60 metric "greenroom_up 1"
systemctl stop greenroomd
check "without a daemon it says so" wait_for 60 metric "greenroom_up 0"
systemctl start greenroomd
check "and notices the next one" wait_for 60 metric "greenroom_up 1"
check "it has used none of what systemd denies it" fails eval \
    'journalctl -b -u greenroom-exporter --no-pager | grep -i -E "denied|not permitted|failed"'
systemd-analyze security greenroom-exporter --no-pager 2>/dev/null | grep Overall | sed 's/^/     /'
rm /etc/greenroom/greenroom.conf.d/metrics.conf
ctl terminate scraped --remove >/dev/null
rm "$apps/scraped.app"
ctl reload >/dev/null
check "the package is purged" dpkg --purge greenroom-exporter libmicrohttpd12
check "and leaves nothing" wait_for 10 fails test -e $socket
