# The package goes onto a plain Debian, and the service is up.
export DEBIAN_FRONTEND=noninteractive
cp greenroom-testapp /usr/local/bin/

check "the package installs, with what Debian has" dpkg -i ./libjansson4_*.deb ./greenroom.deb
check "greenroomd is active, and says so itself (Type=notify)" wait_for 30 systemctl is-active greenroomd
check "it is started at boot" systemctl is-enabled greenroomd
check "the group that apps live in is there" systemctl is-active greenroom-apps
check "the units are as systemd wants them" \
    same "$(systemd-analyze verify greenroomd.service greenroom-apps.service 2>&1 | grep -v "Command 'man ")" ""
check "there is a group for those who may manage apps" getent group greenroom
check "its folders are there" test -d /etc/greenroom/apps -a -d /run/greenroom -a -d /var/lib/greenroom
check "all that dpkg installed is as it was packed" dpkg --verify greenroom
check "greenroomctl finds the daemon" ctl status
ctl status | sed 's/^/     /'
systemctl status greenroomd greenroom-apps --no-pager --lines 0 | sed 's/^/     /'
systemd-analyze security greenroomd greenroom-apps 2>/dev/null | awk '/→/ { print "     " $0 }'
systemd-analyze security greenroomd greenroom-apps --no-pager 2>/dev/null | grep -E 'Overall' | sed 's/^/     /'
awk '/^(VmRSS|RssAnon|Threads)/ { print "     greenroomd " $0 }' "/proc/$(property greenroomd MainPID)/status"
