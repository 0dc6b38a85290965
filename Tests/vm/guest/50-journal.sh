# Checks the journal: fields, message IDs, the message catalog, and the output of apps.
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

check "the entry of a state change has its message ID, app, state and reason" wait_for 10 eval \
    "last MESSAGE_ID=$changed GREENROOM_APP=talker GREENROOM_STATE=active | grep -q GREENROOM_REASON"
entry=$(last MESSAGE_ID=$ended GREENROOM_APP=talker)
for name in GREENROOM_CODE GREENROOM_NAMESPACE GREENROOM_RECEIPT GREENROOM_STATE PRIORITY CODE_FILE CODE_LINE; do
    check "the entry of a termination has $name=" has "$entry" "\"$name\""
done
check "entries have the unit greenroomd.service" has "$entry" '"_SYSTEMD_UNIT":"greenroomd.service"'
check "the message catalog explains a termination and names the app" \
    has "$(journalctl -b -x -n 1 -o short MESSAGE_ID=$ended GREENROOM_APP=talker)" "Subject: App talker has ended"
missing=
for id in $(journalctl -b _COMM=greenroomd -o json | grep -o '"MESSAGE_ID":"[0-9a-f]*"' | sort -u | cut -d'"' -f4); do
    journalctl --list-catalog "$id" >/dev/null 2>&1 || missing="$missing $id"
done
check "every message ID in the journal is in the message catalog" same "$missing" ""
check "the output of an app is in the journal with its ID" \
    wait_for 10 eval "last SYSLOG_IDENTIFIER=talker _TRANSPORT=stdout PRIORITY=6 | grep -q 'first line of talker'"
check "the priority prefix of a line is applied" has "$(last SYSLOG_IDENTIFIER=talker PRIORITY=3)" "something is wrong"
check "the line has the unit greenroom-apps.service" \
    has "$(last SYSLOG_IDENTIFIER=talker PRIORITY=3)" '"_SYSTEMD_UNIT":"greenroom-apps.service"'
check "the line has the user ID of the app" has "$(last SYSLOG_IDENTIFIER=talker PRIORITY=3)" '"_UID":"1000"'
log=$(ctl log talker)
check "greenroomctl log prints the output of the app" has "$log" "first line of talker"
check "greenroomctl log prints the entries of the daemon about the app" has "$log" "talker: state changed"
check "greenroomctl log --json prints JSON" has "$(ctl log --json -n 1 talker)" '"MESSAGE"'
check "greenroomctl log without an app prints the entries of the daemon" has "$(ctl log -n 50)" "greenroomd"
check "greenroomctl log does not print entries of other users" eval \
    "runuser -u user -- logger --journald <<<\$'MESSAGE=lies\nGREENROOM_APP=talker'; sleep 1; ! ctl log talker | grep lies"

# Restarts journald, as an upgrade of systemd does.
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
check "the output of an app is in the journal after a restart of journald" wait_for 30 eval '[ "$(lines)" -gt $((before + 3)) ]'
ctl terminate chatty >/dev/null
check "the entries of the daemon are in the journal after a restart of journald" \
    wait_for 20 eval "last MESSAGE_ID=$ended GREENROOM_APP=chatty | grep -q GREENROOM_RECEIPT"
rm $apps/chatty.app
ctl reload >/dev/null

# Prints the entries of a short run.
echo "     systemctl status greenroomd:"
systemctl status greenroomd --no-pager --lines 5 | sed 's/^/     | /'
echo "     journalctl -o verbose, the end of talker:"
journalctl -b -o verbose --no-pager MESSAGE_ID=$ended GREENROOM_APP=talker | sed 's/^/     | /'
echo "     journalctl -x:"
journalctl -b -x --no-pager -o short GREENROOM_APP=talker | grep -v '^-- [ABQ][^-]*$' | sed 's/^/     | /'
