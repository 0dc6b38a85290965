# Timers, hooks, and events of the machine at their real sources (L30, L33, L57).
inbox=/run/greenroom/inbox
cat >/usr/local/bin/note <<'END'
#!/bin/sh
echo "$1 $GREENROOM_STATE $GREENROOM_REASON ${GREENROOM_SLEPT_SEC-}" >>/tmp/notes
END
chmod +x /usr/local/bin/note
cat >$apps/clock.app <<'END'
[App]
ExecStart=/bin/sleep 100000
[Wake]
OnCalendar=*:*:0/20
AccuracySec=1s
END
cat >$apps/aware.app <<'END'
[App]
ExecStart=/bin/sleep 100000
Notifications=time locale
[Lifecycle]
ExecBeforeSuspend=/usr/local/bin/note before
ExecAfterResume=/usr/local/bin/note after
END
ctl reload >/dev/null
check "list-timers shows the next time" has "$(ctl list-timers)" clock
check "a timer launches an app in the background" wait_for 60 eval 'is clock background || is clock suspended'
check "the next time is shown" has "$(ctl --json status clock)" '"timers"'
ctl terminate clock >/dev/null
rm $apps/clock.app

ctl launch aware >/dev/null
zone=$(timedatectl show --property Timezone --value)
timedatectl set-timezone Asia/Tokyo
check "an app in the foreground is notified of the new time zone" wait_for 30 grep -q Asia/Tokyo $inbox/aware/time
ctl background aware >/dev/null
check "it is suspended" wait_for 30 is aware suspended
check "its hook ran before" has "$(cat /tmp/notes)" "before suspended idle"
mkdir -p /etc/default
cp /etc/default/locale /tmp/locale.before 2>/dev/null
echo LANG=de_DE.UTF-8 >/etc/locale.conf
echo LANG=de_DE.UTF-8 >/etc/default/locale
timedatectl set-timezone "$zone"
check "a suspended app is not woken for a notification" fails wait_for 5 fails is aware suspended
ctl activate aware >/dev/null
check "it finds the new locale when it runs again" wait_for 30 grep -q de_DE $inbox/aware/locale
check "its hook ran after the resume, and knows how long it slept" wait_for 30 grep -q "^after .* [0-9]" /tmp/notes
cat /tmp/notes | sed 's/^/     /'
rm -f /etc/locale.conf
if [ -e /tmp/locale.before ]; then cp /tmp/locale.before /etc/default/locale; else rm -f /etc/default/locale; fi
ctl terminate aware >/dev/null
rm -f $apps/aware.app /usr/local/bin/note /tmp/notes
ctl reload >/dev/null
