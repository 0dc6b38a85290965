# The package goes, and leaves what is the administrator's and the apps'.
ctl launch idle --background >/dev/null
idle=$(pid idle)
cp $apps/idle.app /root/idle.app
check "it is removed while an app runs" dpkg -r greenroom
check "the daemon is gone" refuse pgrep greenroomd
check "the app is gone" test ! -e "/proc/$idle"
check "no unit of it is loaded and running" same "$(systemctl list-units --no-legend 'greenroom*' | grep -v not-found)" ""
check "the settings stay" test -e /etc/greenroom/greenroom.conf
check "the receipts stay" test -e /var/lib/greenroom/receipts.jsonl
check "it installs again over that" dpkg -i ./greenroom.deb
check "and is up" wait_for 30 systemctl is-active greenroomd
check "it is purged" dpkg -P greenroom
check "the settings are gone" test ! -e /etc/greenroom/greenroom.conf
check "the administrator's manifests are not" test -e $apps/idle.app
check "state and runtime folder are gone" test ! -e /var/lib/greenroom -a ! -e /run/greenroom
check "no file of it is left" same "$(find /lib /usr /etc/systemd -name '*greenroom*' ! -name 'greenroom-testapp' 2>/dev/null)" ""
check "no unit failed" same "$(systemctl list-units --failed --no-legend)" ""
