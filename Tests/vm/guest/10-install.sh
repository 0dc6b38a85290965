# Installs the package on a plain Debian and checks the service.
export DEBIAN_FRONTEND=noninteractive
cp greenroom-testapp /usr/local/bin/

check "the package installs with packages of Debian" dpkg -i ./libjansson4_*.deb ./libncursesw6_*.deb ./greenroom.deb
check "greenroomd is active (Type=notify)" wait_for 30 systemctl is-active greenroomd
check "greenroomd is enabled at boot" systemctl is-enabled greenroomd
check "greenroom-apps.service is active" systemctl is-active greenroom-apps
check "systemd-analyze verify accepts the units" \
    same "$(systemd-analyze verify greenroomd.service greenroom-apps.service 2>&1 | grep -v "Command 'man ")" ""
check "the group greenroom exists" getent group greenroom
check "the configuration, runtime and state directories exist" test -d /etc/greenroom/apps -a -d /run/greenroom -a -d /var/lib/greenroom
check "dpkg --verify finds no differences" dpkg --verify greenroom
check "greenroomctl connects to the daemon" ctl status
ctl status | sed 's/^/     /'
systemctl status greenroomd greenroom-apps --no-pager --lines 0 | sed 's/^/     /'
systemd-analyze security greenroomd greenroom-apps --no-pager 2>/dev/null | awk '/→/ { print "     " $0 }'
awk '/^(VmRSS|RssAnon|Threads)/ { print "     greenroomd " $0 }' "/proc/$(property greenroomd MainPID)/status"
