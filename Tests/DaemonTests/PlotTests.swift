import Glibc
import JSON
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing
import Timeline

@testable import Daemon

/// `greenroomctl plot`, `savings` and `replay`, as users call them.
@Suite("The verbs that read a recording")
struct PlotTests {
    private static func run(_ arguments: [String], in folder: String) throws -> (status: EndStatus?, output: String) {
        try TestDaemon.runToEnd(arguments, in: folder, executable: TestDaemon.binaries + "/greenroomctl")
    }

    @Test("plot draws a recording in each form, of all apps, of some, and since a time; savings and replay are tables")
    func forms() throws {
        let daemon = try TestDaemon([
            "photos": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=0"), "notes": TestDaemon.manifest(""),
            "trial": TestDaemon.manifest("", "[Lifecycle]\nSuspend=dry-run\nSuspendDelaySec=0"),
        ])
        _ = try daemon.launch("trial", background: true)
        _ = try daemon.launch("photos")
        _ = try daemon.launch("notes")
        try daemon.waitUntil("photos", is: "suspended")
        try daemon.eventually("the other one would be suspended") {
            try daemon.status("trial")["awake"]?.arrayValue?.first?["reason"]?.stringValue == "dryRun"
        }
        _ = try daemon.call("SimulatePressure", [.string("critical")])
        try daemon.waitUntil("photos", is: "notRunning")
        func output(_ arguments: String...) throws -> String {
            let (status, output) = try Self.run(["--runtime", daemon.runtime] + arguments, in: daemon.root)
            #expect(status == .exited(0), "\(output)")
            return output
        }

        let svg = try output("plot", "--svg")
        #expect(svg.hasPrefix("<svg xmlns=") && svg.hasSuffix("</svg>\n"))
        #expect(["photos", "notes", "trial"].allSatisfy { svg.contains(">\($0)</text>") })
        #expect(svg.contains("photos: state changed: background → suspended (idle)"))
        let one = try output("plot", "ph*", "--svg")
        #expect(one.contains(">photos</text>") && !one.contains(">notes</text>"))
        let html = try output("plot", "notes", "--html")
        #expect(html.hasPrefix("<!DOCTYPE html>") && html.contains("notes: state changed: inactive → active"))
        #expect(!html.contains("photos: state changed"))
        let trace = try output("plot", "--perfetto")
        #expect(trace.hasPrefix("\n") && trace.contains("photos") && trace.contains("cause"))
        let all = try JSONValue.parse(try output("--json", "plot", "photos", "--since", "-1h"))
        #expect(all["apps"]?.arrayValue?.first?["states"]?.arrayValue?.isEmpty == false)
        let late = try JSONValue.parse(try output("--json", "plot", "photos", "--since", "now"))
        #expect(late["apps"]?.arrayValue?.first?["states"]?.arrayValue?.isEmpty == true)

        // Columns are as wide as what is in them. A report has its headings in a pipe, too.
        func lines(_ output: String) -> [String] {
            output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        }
        let savings = lines(try output("savings"))
        try #require(savings.count == 9, "\(savings)")
        #expect(savings[0] == "APP ASLEEP OF SLEEPS IDLE MEMORY")
        #expect(savings[1].hasPrefix("photos ") && savings[1].contains("s 1 "), "\(savings)")
        #expect(savings.contains { $0.hasPrefix("In ") && $0.contains(", 3 apps slept for ") })
        #expect(
            savings[5...6] == [
                "1 suspended app was ended to free memory.", "With Suspend=dry-run, in which nothing is frozen:",
            ])
        #expect(savings[7].hasPrefix("APP WOULD SLEEP OF SLEEPS ") && !savings.contains { $0.hasSuffix(" -") })
        #expect(savings[8].hasPrefix("trial ") && savings[8].contains("s 1 "))
        let replay = lines(try output("replay", "--jetsam-order", "lru"))
        try #require(replay.count == 4)
        #expect(replay[0] == "TIME KILLED WITH LRU")
        let decision = replay[1].split(separator: " photos (", omittingEmptySubsequences: false)
        #expect(decision.count == 3 && decision.dropFirst().allSatisfy { $0.hasSuffix(", suspended)") }, "\(replay)")
        #expect(
            replay[2].hasSuffix(
                " events, 1 app was killed for memory with largest; with lru it would have been 1, the same in 1 of 1 decisions."
            ))
        #expect(replay[3] == "Each decision is judged by what was recorded until then.")
        let plain = lines(try output("replay"))
        #expect(plain.count == 3 && plain[2].hasSuffix(" events, 1 app was killed for memory with largest."))
    }

    @Test("what cannot be shown is refused: no form, two, an app that was not recorded, a trace on a terminal")
    func refusals() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        _ = try daemon.launch("photos")
        func refusal(_ arguments: String..., status: Int32 = 1) throws -> String {
            let (ended, output) = try Self.run(["--runtime", daemon.runtime] + arguments, in: daemon.root)
            #expect(ended == .exited(status), "\(output)")
            return output
        }
        #expect(
            try refusal("plot", status: 2).contains(
                "plot: missing option; expected --svg, --html, --perfetto or --json"))
        #expect(try refusal("plot", "--svg", "--html", status: 2).contains("--svg and --html are mutually exclusive"))
        #expect(try refusal("plot", "--svg", "--since", "soon", status: 2).contains("--since: invalid time 'soon'"))
        #expect(try refusal("plot", "ghost", "--svg").contains("The recording has nothing of 'ghost'."))
        #expect(try refusal("savings", "ghost").contains("The recording has nothing of 'ghost'."))

        let (number, path) = try openTerminal()
        let master = SharedDescriptor(Descriptor(adopting: number))
        let terminal = SharedDescriptor(try Descriptor.open(path, O_RDWR | O_NOCTTY))
        var starting = try startProcess(
            SpawnRequest(
                executable: TestDaemon.binaries + "/greenroomctl",
                arguments: ["--runtime", daemon.runtime, "plot", "--perfetto"],
                environment: ["PATH=/usr/bin:/bin", "TERM=dumb"], standardInput: terminal, standardOutput: terminal,
                standardError: terminal))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        waitForReadable([starting.process.descriptor])
        #expect(try starting.process.reap()?.status == .exited(1))
        var shown = ""
        var buffer = [UInt8](repeating: 0, count: 4096)
        // The kernel moves it from one end to the other in pieces.
        while !shown.contains("> apps.pftrace"), isReadable(master.raw, within: .seconds(20)) {
            let count = read(master.raw, &buffer, buffer.count)
            guard count > 0 else { break }
            shown += String(decoding: buffer[..<count], as: UTF8.self)
        }
        #expect(shown.contains("A Perfetto trace is not text.") && shown.contains("> apps.pftrace"))
    }

    private final class Performer: EffectPerforming {
        func perform(_ effect: Effect, _ id: EffectID) {}
    }

    @Test("a picture has at most 20,000 bars and a page 100,000; Perfetto shows them all")
    func bounds() throws {
        let root = makeTemporaryFolder("greenroom-plot")
        defer {
            MappedFile.stopCountingOwnEnd()
            removeTree(root)
        }
        let loop = try EventLoop()
        let recording = Recording(folder: root + "/recording", limit: 256 << 20, journal: .quiet)
        let logbook = Logbook(path: root + "/logbook", journal: .quiet, recording: recording)
        logbook.create(LifecycleCore(), records: [:])
        let driver = try CoreDriver(loop: loop, core: LifecycleCore(), logbook: logbook)
        let performer = Performer()
        driver.connect(performer: performer, observers: [])
        driver.send(.configuration(.configured(ManagerPolicy())))
        driver.send(.configuration(.started))
        // Each change of the memory level is a bar.
        for number in 1...UInt64(TimelinePage.maximumBars) {
            driver.send(.memory(.pressureSimulated(RequestID(number), number.isMultiple(of: 2) ? .normal : .warning)))
            while !loop.work.isEmpty { _ = try loop.runOnce(timeout: .seconds(60)) }
        }
        for (form, bound) in [("--svg", TimelineDrawing.maximumBars), ("--html", TimelinePage.maximumBars)] {
            let (status, output) = try Self.run(["plot", form, "--file", root], in: root)
            #expect(status == .exited(1))
            #expect(
                output.contains(
                    "The document would have 100001 bars; at most \(bound) can be shown.\n"), "\(output.prefix(400))")
            #expect(output.contains("Name an app, or a time with --since; or use --perfetto."))
        }
        #expect(TimelineDrawing.maximumBars == 20_000 && TimelinePage.maximumBars == 100_000)
        #expect(try Self.run(["plot", "--perfetto", "--file", root], in: root).status == .exited(0))
        var about = stat()
        #expect(lstat(root + "/output", &about) == 0 && about.st_size > 2 * 100_000)
    }
}
