import Control
import Glibc
import JSON
import LifecycleCore
import Posix
import Timeline

/// Verbs that read the recording.
extension Session {
    /// The form of this program's documents, and the version whose events it plays.
    private static let version = ControlNames.version

    func plot() throws(Failure) -> Int32 {
        var builder = TimelineBuilder()
        let player = try play(invocation.options[.file].map { [$0] } ?? []) { builder.take($0) }
        let all = builder.finish(problems: player.problems)
        let since = invocation.options[.since].flatMap { TimeParser.parse($0) }
        if since != nil, all.clock == nil {
            throw Failure("--since: the recording does not say at which time it was made.")
        }
        try requireRecorded(in: all.lanes.map(\.app))
        let names = apps
        let timeline = all.selection(
            since: since.flatMap { all.instant(microseconds: $0.microseconds) },
            apps: names.isEmpty ? nil : { app in names.contains { isMatch(app, $0) } })
        for problem in timeline.problems { warn(escaped(problem)) }
        try show(timeline)
        return Self.status(player)
    }

    private func show(_ timeline: Timeline) throws(Failure) {
        if wantsJSON { return try show(timeline.json) }
        let bound = invocation.has(.svg) ? TimelineDrawing.maximumBars : TimelinePage.maximumBars
        if !invocation.has(.perfetto), timeline.bars > bound {
            throw Failure(
                "The document would have \(timeline.bars) bars; at most \(bound) can be shown.",
                hint: "Name an app, or a time with --since; or use --perfetto.")
        }
        if invocation.has(.svg) {
            var drawing = TimelineDrawing(timeline) { Timestamp(microseconds: $0).local("%T") }
            try show(drawing.svg())
        } else if invocation.has(.html) {
            try show(TimelinePage.html(timeline))
        } else {
            if screen.isTerminal {
                throw Failure(
                    "A Perfetto trace is not text.",
                    hint: "Write it to a file: greenroomctl plot --perfetto > apps.pftrace")
            }
            var trace = PerfettoTrace(timeline)
            try write(trace.serialized()[...], to: STDOUT_FILENO)
        }
    }

    func replay() throws(Failure) -> Int32 {
        let order = invocation.options[.jetsamOrder].flatMap(ManagerPolicy.JetsamOrder.init(name:))
        var replay = JetsamReplay(order: order)
        var clock: Int64?
        var recordedOrder: ManagerPolicy.JetsamOrder?
        let player = try play(operands) { step in
            replay.take(step)
            switch step {
            case .began(let core, at: _, let began):
                clock = began ?? clock
                recordedOrder = core.jetsamOrder
            case .handled(let logged, effects: _, let core):
                if case .configuration(.configured) = logged.event { recordedOrder = core.jetsamOrder }
            case .event: break
            }
        }
        let document = ReplayDocument(
            decisions: replay.decisions, order: order, recordedOrder: recordedOrder, clock: clock,
            events: player.events,
            problems: player.problems)
        if wantsJSON {
            try show(document.json)
        } else {
            for problem in player.problems { warn(escaped(problem)) }
            try show(document.text(self))
        }
        return Self.status(player)
    }

    func savings() throws(Failure) -> Int32 {
        var account = SleepAccount()
        let player = try play(invocation.options[.file].map { [$0] } ?? []) { account.take($0) }
        account.finish()
        try requireRecorded(in: account.apps.keys.map(\.name))
        let names = apps
        let document = SavingsDocument(account, problems: player.problems) { app in
            names.isEmpty || names.contains { isMatch(app.name, $0) }
        }
        if wantsJSON {
            try show(document.json)
        } else {
            for problem in player.problems { warn(escaped(problem)) }
            try show(document.text(self))
        }
        return Self.status(player)
    }

    /// A named app of which nothing was recorded is an error, as it is for the other verbs.
    private func requireRecorded(in recorded: [String]) throws(Failure) {
        for word in apps where !recorded.contains(where: { isMatch($0, word) }) {
            guard isPattern(word) else { throw Failure("The recording has nothing of '\(escaped(word))'.") }
            reportUnmatched(word)
        }
    }

    /// 1 if a part of the recording could not be played: the result is of the rest.
    private static func status(_ player: Player) -> Int32 { player.isIncomplete ? 1 : 0 }

    // MARK: Files

    /// No file of the recording is larger: the logbook is replaced long before.
    private static let largestFile = 256 << 20

    /// Plays files, or the recording of the daemon.
    private func play(_ given: [String], _ listener: (Player.Step) -> Void) throws(Failure) -> Player {
        let given = given.isEmpty ? [try runtimeFolder()] : given.map(environment.absolutePath)
        var player = Player()
        var count = 0
        for path in given {
            var about = stat()
            guard stat(path, &about) == 0 else {
                throw Failure("Cannot read \(escaped(path)): \(String(cString: strerror(errno))).")
            }
            if about.st_mode & S_IFMT == S_IFDIR {
                count += try play(folder: path, &player, listener)
            } else {
                try play(try read(path), name: path, &player, listener)
                count += 1
            }
        }
        guard count > 0 else {
            throw Failure(
                "\(escaped(given[0])) has no recording.",
                hint: "The daemon keeps one if TraceSize= in greenroom.conf is not 0.")
        }
        guard player.files > 0 else { throw Failure(escaped(player.problems.first ?? "Nothing could be read") + ".") }
        return player
    }

    /// - Returns: how many files there are.
    private func play(
        folder: String, _ player: inout Player, _ listener: (Player.Step) -> Void
    ) throws(Failure) -> Int {
        // First the newest: the daemon may replace it meanwhile, and then it is among the others.
        let newest = access(folder + "/logbook", F_OK) == 0 ? try read(folder + "/logbook") : nil
        let kept = access(folder + "/recording", F_OK) == 0 ? folder + "/recording" : folder
        if access(kept, R_OK | X_OK) != 0 { throw failure(kept, errno) }
        let numbers = folderEntries(kept).compactMap(UInt64.init).sorted()
        for number in numbers {
            let path = "\(kept)/\(number)"
            // The daemon may have removed it.
            if access(path, F_OK) != 0, errno == ENOENT { continue }
            try play(try read(path), name: path, &player, listener)
        }
        if let newest { try play(newest, name: folder + "/logbook", &player, listener) }
        return numbers.count + (newest == nil ? 0 : 1)
    }

    private func play(
        _ bytes: [UInt8], name: String, _ player: inout Player, _ listener: (Player.Step) -> Void
    ) throws(Failure) {
        do {
            player.play(try Segment(bytes, name: name, version: Self.version), listener)
        } catch {
            player.add(problem: error.sentence)
        }
    }

    private func read(_ path: String) throws(Failure) -> [UInt8] {
        do {
            return try readFile(at: path, limit: Self.largestFile)
        } catch {
            throw failure(path, error.errno)
        }
    }

    private func failure(_ path: String, _ number: Int32) -> Failure {
        Failure(
            "Cannot read \(escaped(path)): \(String(cString: strerror(number))).",
            hint: number == EACCES || number == EPERM ? "Only the daemon's user may read the recording." : nil)
    }

    /// The runtime folder of the daemon that other verbs call; without a daemon, the one that it would have.
    private func runtimeFolder() throws(Failure) -> String {
        do throws(Failure) {
            if let folder = try connect().info().runtime { return folder }
        } catch {
            guard error.isOfNoServer else { throw error }
            if let given = invocation.options[.runtime] { return environment.absolutePath(given) }
            if !isForRoot { throw error }
        }
        return "/run/greenroom"
    }
}

extension ManagerPolicy.JetsamOrder {
    /// The words of `JetsamOrder=`.
    static let names = ["largest", "lru", "balanced"]

    init?(name: String) {
        switch name {
        case "largest": self = .largest
        case "lru": self = .lru
        case "balanced": self = .balanced
        default: return nil
        }
    }

    var name: String {
        switch self {
        case .largest: "largest"
        case .lru: "lru"
        case .balanced: "balanced"
        }
    }
}
