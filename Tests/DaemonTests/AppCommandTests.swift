import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Shell scripts as apps: `greenroomctl app` in real processes.
@Suite("Apps in shell scripts")
struct AppCommandTests {
    /// A daemon with the app `script`, whose script writes into files of `$here`.
    private func daemon(_ script: String, _ more: String = "", app: String = "") throws -> TestDaemon {
        let root = try TestDaemon.makeFolder()
        try replaceFile(
            at: root + "/script", with: Array(("#!/bin/bash\nhere=\(root)\n" + script).utf8), mode: 0o755)
        let manifest = """
            [App]
            Type=notify
            ExecStart=\(root)/script
            Environment=PATH=\(TestDaemon.binaries):/usr/bin:/bin
            URLSchemes=script
            \(app)
            [Lifecycle]
            SuspendDelaySec=0
            LaunchDeadlineSec=1min
            BackgroundDeadlineSec=infinity
            BackgroundModes=push
            \(more)

            """
        return try TestDaemon(["script": manifest], root: root)
    }

    private func lines(_ daemon: TestDaemon, _ name: String = "lines") -> [String] {
        TestDaemon.text(of: daemon.root + "/" + name).split(separator: "\n").map(String.init)
    }

    private func wait(_ daemon: TestDaemon, _ expected: [String]) throws {
        try? daemon.eventually("the file has \(expected.count) lines") { lines(daemon).count >= expected.count }
        #expect(lines(daemon) == expected)
    }

    private func open(_ daemon: TestDaemon, _ url: String) throws {
        _ = try daemon.call("Open", [.string(""), .string(url), .dictionary([])])
    }

    /// Writes each event without its serial, and answers those that have to be answered.
    private static let loop = """
        while read -r serial kind rest; do
            echo "$kind $rest" >>$here/lines
            case $kind in
            push) greenroomctl app answer $serial --result new-data ;;
            didEnterBackground | willTerminate) greenroomctl app answer $serial ;;
            esac
        done
        """
    private static let kinds = "openURL didBecomeActive willEnterForeground didEnterBackground push willTerminate"

    @Test(
        "a shell script gets each event as a line and answers it, from its launch to its end; URLs reach it while it is not running, running and suspended (L8, L17)"
    )
    func events() throws {
        let daemon = try daemon("greenroomctl app events \(Self.kinds) | " + Self.loop)
        try open(daemon, "script:first")
        try wait(daemon, ["openURL script:first", "didBecomeActive launch"])
        try open(daemon, "script:second")
        _ = try daemon.ask("Background", "script")
        try daemon.waitUntil("script", is: "suspended")
        try open(daemon, "script:third")
        _ = try daemon.ask("Push", "script", [.string("{\"a\":\n1}")])
        try wait(
            daemon,
            [
                "openURL script:first", "didBecomeActive launch", "openURL script:second",
                "didEnterBackground infinity",
                "willEnterForeground ", "openURL script:third", "didBecomeActive return", "push 1 {\"a\": 1}",
            ])
        _ = try daemon.terminate("script")
        // 5s less what a busy machine takes until the event is sent.
        let left = 2...4
        #expect(left.contains { lines(daemon).last == "willTerminate \($0) requested" })
        let receipt = try daemon.receipts("script").last
        #expect(receipt?["explanation"]?.stringValue == "Terminated on request: killed once it had answered.")
    }

    @Test(
        "no event is lost or printed twice when daemons are killed while a script handles events",
        arguments: [false, true])
    func killedDaemons(waits: Bool) throws {
        let script =
            waits
            ? """
            while event=$(greenroomctl app wait \(Self.kinds)); do
                read -r serial kind rest <<<"$event"
                echo "$kind $rest" >>$here/lines
                [ -e $here/go ] || sleep 0.05
                case $kind in
                push) greenroomctl app answer $serial --result new-data ;;
                didEnterBackground | willTerminate) greenroomctl app answer $serial ;;
                esac
            done
            """ : "greenroomctl app events \(Self.kinds) | " + Self.loop
        var daemon = try daemon(script)
        _ = try daemon.launch("script", background: true)
        for number in 1...9 {
            _ = try daemon.call("Push", [.string("script"), .string("\(number)")])
            if number % 3 == 0 {
                daemon.crash()
                daemon = try daemon.successor()
            }
        }
        try daemon.eventually("all pushes are completed") {
            try lines(daemon).count == 10 && daemon.status("script")["wakes"]?.arrayValue?.isEmpty ?? true
        }
        #expect(lines(daemon) == ["didEnterBackground infinity"] + (1...9).map { "push \($0) \($0)" })
    }

    @Test("between two calls of wait events are kept, in their order; what was read is not repeated")
    func waits() throws {
        let daemon = try daemon(
            """
            greenroomctl app wait openURL didBecomeActive push >>$here/lines
            until [ -e $here/go ]; do sleep 0.02; done
            for n in 1 2 3 4; do greenroomctl app wait openURL push >>$here/lines; done
            greenroomctl app wait --timeout 50ms openURL push; echo "status $?" >>$here/lines
            serial=$(tail -n 2 $here/lines | head -n 1 | cut -d ' ' -f 1)
            greenroomctl app answer $serial --result failed
            greenroomctl app answer $serial 2>>$here/lines
            greenroomctl app wait push --after $serial --timeout 50ms; echo "last status $?" >>$here/lines
            sleep 1000
            """)
        _ = try daemon.launch("script")
        try wait(daemon, ["2 didBecomeActive launch"])
        for url in ["script:1", "script:2", "script:3"] { try open(daemon, url) }
        _ = try daemon.call("Push", [.string("script"), .string("now")])
        try daemon.writeFile(daemon.root + "/go", "")
        // The push is repeated until it is answered: the wait after it has got it, too.
        try daemon.eventually("the script waits in vain") { lines(daemon).contains("last status 124") }
        let all = lines(daemon)
        #expect(
            Array(all.prefix(5)) == [
                "2 didBecomeActive launch", "3 openURL script:1", "4 openURL script:2", "5 openURL script:3",
                "6 push 1 now",
            ])
        #expect(all.contains { $0.contains("no event 6 waits for an answer") })
    }

    @Test("task passes the exit status of its command, and keeps the app awake while it runs (L21)")
    func task() throws {
        let daemon = try daemon(
            """
            greenroomctl app remaining >>$here/lines
            greenroomctl app task copy -- sh -c 'until [ -e $0/go ]; do sleep 0.02; done; exit 7' $here
            echo "status $?" >>$here/lines
            greenroomctl app task copy -- sh -c 'kill -9 $$'; echo "status $?" >>$here/lines
            greenroomctl app task copy -- no-such-command 2>>$here/lines; echo "status $?" >>$here/lines
            greenroomctl app task copy -- /dev/null 2>>$here/lines; echo "status $?" >>$here/lines
            greenroomctl app events didEnterBackground | \(Self.loop)
            """, app: "NotifyAccess=all")
        _ = try daemon.call("Version")
        let launching = try daemon.begin("Launch", "script", [.dictionary([("background", .bool(true))])])
        try daemon.eventually("the task is open") {
            try daemon.status("script")["tasks"]?.arrayValue?.first?["name"]?.stringValue == "copy"
        }
        daemon.crash()
        let next = try daemon.successor()
        #expect(try next.status("script")["tasks"]?.arrayValue?.count == 1)
        try next.writeFile(daemon.root + "/go", "")
        try next.waitUntil("script", is: "suspended")
        #expect(
            Array(lines(next).prefix(7)) == [
                "infinity", "status 7", "status 137",
                "greenroomctl: app task: cannot run 'no-such-command': No such file or directory", "status 127",
                "greenroomctl: app task: cannot run '/dev/null': Permission denied", "status 126",
            ])
        _ = launching
    }

    @Test("the time of wait passes also without a daemon")
    func waitsInVain() throws {
        let daemon = try daemon(
            "greenroomctl app wait push --timeout 1s; echo \"status $?\" >>$here/lines; exec sleep 1000")
        _ = try daemon.launch("script")
        // Ready is answered after the launch: by the next answer the script has its own.
        _ = try daemon.call("Version")
        daemon.crash()
        try wait(daemon, ["status 124"])
        _ = try daemon.successor()
    }

    @Test("when the background time ends, task sends SIGTERM to its command and says so (L22)")
    func expiry() throws {
        let daemon = try daemon(
            """
            greenroomctl app events didEnterBackground | while read -r serial kind rest; do
                greenroomctl app task 'long work' -- sleep 1000 2>>$here/lines &
                until grep -q . $here/began; do sleep 0.02; done
                greenroomctl app answer $serial
                wait $!
                echo "status $?" >>$here/lines
            done
            """, "BackgroundTimeSec=6s")
        _ = try daemon.launch("script")
        let pending = try daemon.begin("Background", "script", [])
        try daemon.eventually("the task is open") {
            try daemon.status("script")["tasks"]?.arrayValue?.isEmpty == false
        }
        try daemon.writeFile(daemon.root + "/began", "yes\n")
        _ = try daemon.finish(pending)
        // It may be suspended before it has written the status.
        try daemon.waitUntil("script", is: "suspended")
        _ = try daemon.ask("Activate", "script")
        try wait(
            daemon,
            ["greenroomctl: The background time ends: sending SIGTERM to 'sleep' (task 'long work').", "status 143"])
    }

    @Test("the state and the summary of a script are there after it was killed, and launch says how it ended (L6, L45)")
    func state() throws {
        let daemon = try daemon(
            """
            greenroomctl app restore $here/restored; echo "restore $?" >>$here/lines
            greenroomctl app launch >$here/launch
            greenroomctl app launch reason >>$here/lines
            head -c 1048577 /dev/zero | greenroomctl app save - 2>>$here/lines
            printf 'a\\0b' | greenroomctl app save -
            greenroomctl app summary 'page 7'
            greenroomctl app status 'reads'
            greenroomctl app wait didBecomeActive >/dev/null
            exec sleep 1000
            """)
        _ = try daemon.launch("script")
        #expect(
            lines(daemon) == [
                "restore 3", "user", "greenroomctl: app save: the state has more than 1 MiB, and is not kept",
            ])
        #expect(try daemon.status("script")["statusText"]?.stringValue == "reads")
        #expect(lines(daemon, "launch").contains("first=yes") && lines(daemon, "launch").contains("summary="))
        kill(try daemon.pid("script"), SIGKILL)
        try daemon.waitUntil("script", is: "notRunning")
        _ = try daemon.launch("script")
        #expect(try readFile(at: daemon.root + "/restored", limit: 100) == Array("a\0b".utf8))
        let launch = lines(daemon, "launch")
        #expect(launch.contains("app=script") && launch.contains("summary=page 7") && launch.contains("first=no"))
        #expect(launch.contains("endCode=signal/2"), "\(launch)")
    }

    @Test("a script that ends its loop ends events with it; a process outside of the app is refused")
    func ends() throws {
        let daemon = try daemon(
            """
            greenroomctl app events didBecomeActive | { read -r line; echo "$line" >>$here/lines; }
            env | grep GREENROOM_BUS_ADDRESS >$here/address
            sleep 1000
            """)
        _ = try daemon.launch("script")
        try daemon.eventually("events has ended") { !lines(daemon, "address").isEmpty }
        #expect(lines(daemon) == ["2 didBecomeActive launch"])
        let path = daemon.root + "/output"
        let output = SharedDescriptor(try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600))
        var starting = try startProcess(
            SpawnRequest(
                executable: TestDaemon.binaries + "/greenroomctl", arguments: ["app", "remaining"],
                environment: [lines(daemon, "address")[0]], standardOutput: output, standardError: output))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        waitForReadable([starting.process.descriptor])
        #expect(try starting.process.reap()?.status == .exited(1))
        let sentence = TestDaemon.text(of: path)
        #expect(sentence.contains("refused the connection"), "\(sentence)")
    }
}
