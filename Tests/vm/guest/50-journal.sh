# The journal: fields, message IDs, the catalogue, and what apps write themselves.
changed=9570bb5ede0f40818b031ee3bb636b62
ended=cb462029ca494b4da27d0aeb15b48612
cat >/usr/local/bin/talker <<'END'
#!/bin/sh
echo "first line of $GREENROOM_APP"
echo "<3>something is wrong" >&2
exec sleep 3600
END
chmod +x /usr/local/bin/talker
printf '%s\n' '[App]' 'ExecStart=/usr/local/bin/talker' User=user >$apps/talker.app
ctl reload >/dev/null
ctl launch talker >/dev/null
ctl terminate talker >/dev/null
last() { journalctl -b -o json -n 1 "$@"; }

check "a change of state has its ID, the app, the state and the reason" wait_for 10 eval \
    "last MESSAGE_ID=$changed GREENROOM_APP=talker GREENROOM_STATE=active | grep -q GREENROOM_REASON"
entry=$(last MESSAGE_ID=$ended GREENROOM_APP=talker)
for name in GREENROOM_CODE GREENROOM_NAMESPACE GREENROOM_RECEIPT GREENROOM_STATE PRIORITY CODE_FILE CODE_LINE; do
    check "an end has $name=" has "$entry" "\"$name\""
done
check "entries come from the service" has "$entry" '"_SYSTEMD_UNIT":"greenroomd.service"'
check "the catalogue explains an end, with the app's name" \
    has "$(journalctl -b -x -n 1 -o short MESSAGE_ID=$ended GREENROOM_APP=talker)" "Subject: App talker has ended"
missing=
for id in $(journalctl -b _COMM=greenroomd -o json | grep -o '"MESSAGE_ID":"[0-9a-f]*"' | sort -u | cut -d'"' -f4); do
    journalctl --list-catalog "$id" >/dev/null 2>&1 || missing="$missing $id"
done
check "every ID that was used is in the catalogue" same "$missing" ""
check "what an app writes is in the journal under its ID" \
    wait_for 10 eval "last SYSLOG_IDENTIFIER=talker _TRANSPORT=stdout PRIORITY=6 | grep -q 'first line of talker'"
check "with the level it gives a line" has "$(last SYSLOG_IDENTIFIER=talker PRIORITY=3)" "something is wrong"
check "with the user and the unit that it really comes from" \
    has "$(last SYSLOG_IDENTIFIER=talker PRIORITY=3)" '"_SYSTEMD_UNIT":"greenroom-apps.service"'
check "and the user" has "$(last SYSLOG_IDENTIFIER=talker PRIORITY=3)" '"_UID":"1000"'
log=$(ctl log talker)
check "greenroomctl log has both: what it wrote" has "$log" "first line of talker"
check "and what became of it" has "$log" "talker: state changed"
check "greenroomctl log --json is JSON" has "$(ctl log --json -n 1 talker)" '"MESSAGE"'
check "without an app it is the daemon's" has "$(ctl log -n 50)" "greenroomd"
check "an entry that another user makes up is not shown" eval \
    "runuser -u user -- logger --journald <<<\$'MESSAGE=lies\nGREENROOM_APP=talker'; sleep 1; ! ctl log talker | grep lies"

# journald is replaced, as by an upgrade of systemd.
cat >/usr/local/bin/chatty <<'END'
#!/bin/sh
n=0
while :; do n=$((n + 1)); echo "line $n"; sleep 0.2; done
END
chmod +x /usr/local/bin/chatty
printf '%s\n' '[App]' 'ExecStart=/usr/local/bin/chatty' User=user >$apps/chatty.app
ctl reload >/dev/null
ctl launch chatty >/dev/null
lines() { journalctl -b SYSLOG_IDENTIFIER=chatty -o cat | grep -c '^line'; }
wait_for 20 eval '[ "$(lines)" -gt 2 ]'
systemctl restart systemd-journald
before=$(lines)
check "what an app writes goes on to the journal when journald was replaced" wait_for 30 eval '[ "$(lines)" -gt $((before + 3)) ]'
ctl terminate chatty >/dev/null
check "and so do the daemon's own entries" \
    wait_for 20 eval "last MESSAGE_ID=$ended GREENROOM_APP=chatty | grep -q GREENROOM_RECEIPT"
rm $apps/chatty.app
ctl reload >/dev/null

# What an administrator sees of a short life.
echo "     systemctl status greenroomd:"
systemctl status greenroomd --no-pager --lines 5 | sed 's/^/     | /'
echo "     journalctl -o verbose, the end of talker:"
journalctl -b -o verbose --no-pager MESSAGE_ID=$ended GREENROOM_APP=talker | sed 's/^/     | /'
echo "     journalctl -x:"
journalctl -b -x --no-pager -o short GREENROOM_APP=talker | grep -v '^-- [ABQ][^-]*$' | sed 's/^/     | /'
