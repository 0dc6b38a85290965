# Removes and purges the package. Files of the administrator and of apps are kept.
ctl launch idle --background >/dev/null
idle=$(pid idle)
cp $apps/idle.app /root/idle.app
check "the package is removed while an app runs" dpkg -r greenroom
check "the daemon has ended" fails pgrep greenroomd
check "the app has ended" test ! -e "/proc/$idle"
check "no unit of the package is loaded" same "$(systemctl list-units --no-legend 'greenroom*' | grep -v not-found)" ""
check "the configuration is kept" test -e /etc/greenroom/greenroom.conf
check "the receipts are kept" test -e /var/lib/greenroom/receipts.jsonl
check "the package installs again" dpkg -i ./greenroom.deb
check "the service is active" wait_for 30 systemctl is-active greenroomd
check "the package is purged" dpkg -P greenroom
check "the configuration is removed" test ! -e /etc/greenroom/greenroom.conf
check "the manifests of the administrator are kept" test -e $apps/idle.app
check "the state and runtime directories are removed" test ! -e /var/lib/greenroom -a ! -e /run/greenroom
check "no file of the package is left" same "$(find /lib /usr /etc/systemd -name '*greenroom*' ! -name 'greenroom-testapp' 2>/dev/null)" ""
check "no unit failed" same "$(systemctl list-units --failed --no-legend)" ""
