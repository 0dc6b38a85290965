"""Pushes of a distributor of UnifiedPush (run)."""

import os
import re
import subprocess
import time

from stage import Failure, USER, wait


def follow_pushes(stage, session):
    """Messages of a distributor launch and wake apps with UnifiedPush=yes, which keep their endpoints; bad calls are refused."""
    def count(line):
        return stage.log().count(line + "\n")

    def distributor(version="2", name="test"):
        return stage.start("/usr/bin/python3", "-B", f"{stage.folder}/distributor.py", f"{stage.runtime}/clients", version, name,
                           user=USER, stdin=subprocess.PIPE)

    def call(process, *words):
        process.stdin.write((" ".join(words) + "\n").replace("\n ", "\n").encode())
        process.stdin.flush()

    def answer(process, expected, *words):
        before = count(expected)
        call(process, *words)
        wait(f"{words[1]} is answered", lambda: count(expected) - before, 1)

    def tokens(name="Chat"):
        return re.findall(f"Distributor: Register {name} ([0-9a-f]{{32}})\n", stage.log())

    def inbox():
        folder = f"{stage.folder}/run/inbox/chat"
        names = os.listdir(folder) if os.path.exists(folder) else []
        return {name.split(".")[0]: open(f"{folder}/{name}").read() for name in names}

    def configure(name, title, setting="UnifiedPush=yes"):
        stage.app(name, "/bin/sleep 1000", "push")
        manifest = f"{stage.folder}/config/apps/{name}.app"
        text = open(manifest).read().replace("[App]\n", f"[App]\nName={title}\n") + f"[Wake]\n{setting}\n"
        stage.write(f"config/apps/{name}.app", text)

    # Without a distributor nothing is said.
    said = stage.log().count("greenroom-session: ")
    configure("chat", "Chat")
    stage.ctl("reload")
    time.sleep(1)
    if stage.log().count("greenroom-session: ") != said:
        raise Failure("an absent distributor is reported")
    server = distributor()
    wait("chat is registered", lambda: len(tokens()), 1)
    token = tokens()[0]
    endpoint = f"https://push.example/{token}"
    wait("its endpoint is reported", lambda: stage.status("chat").get("pushEndpoint"), endpoint)
    answered = "Distributor: Message answered ({'id': <'m1'>},)"
    answer(server, answered, token, "Message", b"hello".hex())
    if stage.state("chat") != ("background", ["push"]) or inbox() != {"push": "hello\n", "pushEndpoint": endpoint + "\n"}:
        raise Failure(f"the message has not launched chat: {stage.state('chat')}, {inbox()}")

    # A suspended app is woken. The app takes no part, so each push keeps it awake for 30s: the next launch begins without one.
    stage.ctl("terminate", "chat")
    stage.ctl("launch", "chat", "--background")
    wait("chat is suspended", lambda: stage.state("chat")[0], "suspended")
    answer(server, answered, token, "Message", "00ff")
    if stage.state("chat") != ("background", ["push"]) or inbox()["push"] != "data:;base64,AP8=\n":
        raise Failure(f"the message has not woken chat: {stage.state('chat')}, {inbox()}")
    stage.ctl("terminate", "chat")

    # What is refused, with a sentence.
    def refused(sentence, *words, by=None):
        answer(by or server, f"Distributor: {words[1]} refused: {sentence}", *words)

    refused("The message has 0 bytes; expected 1 to 4096.", token, "Message", "")
    refused("The message has 4097 bytes; expected 1 to 4096.", token, "Message", "41" * 4097)
    refused("No app is registered with this token.", "0" * 32, "Message", "41")
    refused("No app is registered with this token.", "", "Message", "41")
    refused("The endpoint is no URL of http or https with at most 1000 bytes.", token, "NewEndpoint", "file:///etc/passwd")
    refused("The endpoint is no URL of http or https with at most 1000 bytes.", token, "NewEndpoint", "https://" + "a" * 993)
    other = distributor(name="other")
    time.sleep(1)
    refused("The caller is not the distributor of this session.", token, "Message", "41", by=other)
    other.terminate()
    other.wait()

    # A flood is bounded here and in the daemon, and what was accepted is in the inbox.
    def answers():
        return stage.log().count("Distributor: Message ")

    begin, accepted = answers(), count(answered)
    call(server, *[token, "Message", "41", "\n"] * 299, token, "Message", "41")
    wait("all messages are answered", lambda: answers() - begin, 300)
    accepted = count(answered) - accepted
    many = count("Distributor: Message refused: More than 100 calls in a second; try again later.")
    if not 0 < accepted <= 64 or not many:
        raise Failure(f"of 300 messages {accepted} were accepted, and {many} refused because there were so many")
    stage.ctl("terminate", "chat")
    time.sleep(1)

    # What is sent while no daemon runs comes with the next one.
    stage.daemon.kill()
    stage.daemon.wait()
    before = count(answered)
    call(server, token, "Message", b"late".hex())
    time.sleep(1)
    if count(answered) != before:
        raise Failure("a message is accepted although no daemon runs")
    stage.start_daemon()
    wait("the message is accepted", lambda: count(answered) - before, 1)
    wait("the next daemon knows the endpoint", lambda: stage.status("chat").get("pushEndpoint"), endpoint)
    if stage.state("chat") != ("background", ["push"]) or inbox().get("push") != "late\n":
        raise Failure(f"the message has not launched chat: {stage.state('chat')}, {inbox()}")
    stage.ctl("terminate", "chat")

    # The distributor ends and begins, and refuses an app: it keeps the other one, which has the token that it had. One that does not answer is
    # awaited.
    stage.write("user/clients.refuse", "ACTION_REQUIRED")
    configure("mail", "Mail")
    stage.ctl("reload")
    sentence = "greenroom-session: org.unifiedpush.Distributor.test does not register 'mail': ACTION_REQUIRED"
    wait("the reason is printed", lambda: count(sentence), 1)
    server.kill()
    server.wait()
    stage.write("user/clients.refuse", "hang")
    server = distributor()
    wait("chat is registered again", lambda: tokens(), [token] * 2)
    answer(server, answered, token, "Message", "41")
    stage.ctl("terminate", "chat")
    os.unlink(f"{stage.runtime}/clients.refuse")

    # greenroom-session ends and begins, and meanwhile an app is gone.
    session.terminate()
    if session.wait():
        raise Failure(f"greenroom-session ended with {session.returncode}")
    configure("mail", "Mail", "")
    stage.ctl("reload")
    session = stage.start_session()
    wait("chat is registered by the next greenroom-session", lambda: tokens(), [token] * 3)
    wait("mail is unregistered", lambda: count(f"Distributor: Unregister  {tokens('Mail')[0]}"), 1)
    answer(server, answered, token, "Message", "41")
    stage.ctl("terminate", "chat")

    # Without the setting the app is unregistered, and gets another token later.
    configure("chat", "Chat", "")
    stage.ctl("reload")
    wait("chat is unregistered", lambda: count(f"Distributor: Unregister  {token}"), 1)
    wait("its token is removed", lambda: os.listdir(f"{stage.runtime}/.local/state/greenroom-session"), [])
    server.terminate()
    server.wait()

    # A distributor of the first version.
    server = distributor("1")
    configure("chat", "Chat")
    stage.ctl("reload")
    wait("chat is registered with the older distributor", lambda: len(tokens()), 4)
    token = tokens()[3]
    wait("its endpoint is reported", lambda: stage.status("chat").get("pushEndpoint"), f"https://push.example/{token}")
    answer(server, "Distributor: Message answered ()", token, "Message", "41")
    if token == endpoint[-32:] or stage.state("chat") != ("background", ["push"]):
        raise Failure(f"the message of the older distributor has not launched chat: {stage.state('chat')}")
    stage.ctl("terminate", "chat")
    configure("chat", "Chat", "")
    stage.ctl("reload")
    wait("chat is unregistered by the older distributor", lambda: count(f"Distributor: Unregister  {token}"), 1)
    server.terminate()
    server.wait()

    # One that does not run is started, if the bus can.
    stage.write("user/dbus-1/services/org.unifiedpush.Distributor.idle.service", f"""[D-BUS Service]
Name=org.unifiedpush.Distributor.idle
Exec=/usr/bin/python3 -B {stage.folder}/distributor.py {stage.runtime}/clients 2 idle
""")
    if not stage.run_as_user("dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/",
                             "org.freedesktop.DBus.ReloadConfig"):
        raise Failure("the bus does not read its configuration")
    configure("chat", "Chat")
    stage.ctl("reload")
    wait("an endpoint is reported", lambda: len(stage.status("chat").get("pushEndpoint", "")), len(endpoint))
    return session
