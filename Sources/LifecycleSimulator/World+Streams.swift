import Idleness
import LifecycleCore

/// Streams with rests, blocked writes and space for output (L50, L51). They have a random stream of their own.
struct FakeStreams {
    /// What an app does, beside that it waits for space.
    enum Kind {
        case none
        /// Streams with rests that keep it awake.
        case shortRests
        /// Streams in whose rests a worker sleeps.
        case longRests
        case writes
    }

    var random: Random
    /// By app; empty: no app has any in this seed.
    private(set) var settings: [Kind] = []
    var areUsed: Bool { !settings.isEmpty }

    init(_ scenario: Scenario) {
        // A number that leaves the worlds of the saved seeds as they were.
        random = Random(seed: scenario.seed ^ 0x7374_7265_616d_2473)
        guard random.chance(300), scenario.hasTraffic else { return }
        for _ in scenario.apps { settings.append(random.pick([.none, .shortRests, .longRests, .longRests, .writes])) }
    }

    fileprivate func kind(of app: Int) -> Kind { app < settings.count ? settings[app] : .none }

    fileprivate mutating func stream(_ kind: Kind, at now: Microseconds) -> PieceStream {
        let rest: Microseconds =
            kind == .longRests
            ? random.pick([6 * .second, 10 * .second, 30 * .second])
            : random.pick([150 * .millisecond, 300 * .millisecond, 1 * .second, 3 * .second, 6 * .second])
        let longest = random.pick([10 * .second, 60 * .second, 240 * .second])
        return PieceStream(
            resumption: random.pick([.untouched, .restarted, .keptRest]), rest: rest, began: now,
            left: max(2, Int(longest / rest)), due: now + rest)
    }
}

/// A server sends a piece, rests, and sends the next one.
struct PieceStream {
    /// What a freeze does to the call in which it rests.
    enum Resumption: Int {
        /// It waits until a time.
        case untouched
        /// The kernel continues it, and does not show which call it is.
        case restarted
        /// The kernel counts what was left from the thaw.
        case keptRest
    }
    let resumption: Resumption
    let rest: Microseconds
    let began: Microseconds
    var left: Int
    /// When the next piece is to be sent.
    var due: Microseconds
    /// When it was last thawed in this rest.
    var resumedAt: Microseconds?
}

extension World {
    /// There was no space for output at this socket.
    private static let full: Int32 = 14
    /// The first call of the rests of streams, one for each resumption.
    private static let restCall = 10

    mutating func actAsStreamPeer() {
        if isQuiet { return }
        queue.push(.streamPeer, at: now + 1 + streams.random.within(0...4 * scenario.pace))
        // What others continue is not promised.
        let workers = apps.indices.filter { apps[$0].policy.role == .worker }
        let isWorker = streams.random.chance(700) && !workers.isEmpty
        let app = isWorker ? streams.random.pick(workers) : streams.random.below(apps.count)
        let waitsForSpace = streams.random.chance(250)
        guard let run = apps[app].run, runs[run].program == .running else { return }
        if waitsForSpace { arrive(input(.stream, run, Self.full, 0), at: run) } else { begin(run) }
    }

    private mutating func begin(_ run: Int) {
        let kind = streams.kind(of: runs[run].app)
        switch kind {
        case .none: break
        case .shortRests, .longRests: beginStream(run, kind)
        case .writes: beginWrite(run)
        }
    }

    /// An app that runs begins something that it continues by itself.
    private mutating func append(_ run: Int, until: Microseconds, _ stream: PieceStream?) -> Int? {
        guard runs[run].canRun, traffic.runs[run].requests.count < 20 else { return nil }
        traffic.runs[run].lastNumber += 1
        traffic.runs[run].requests.append(
            RunTraffic.Request(
                number: traffic.runs[run].lastNumber, since: now, until: until, isUnwatched: stream == nil,
                lateness: pastLateness, lateFreezes: traffic.runs[run].lateFreezes, isWrite: stream == nil,
                stream: stream))
        traffic.runs[run].lastWork = now
        traffic.runs[run].lastTransfer = now
        return traffic.runs[run].lastNumber
    }

    // MARK: Blocked writes

    /// A peer does not read, until it does.
    private mutating func beginWrite(_ run: Int) {
        guard let number = append(run, until: now + 3600 * .second, nil) else { return }
        faults.add(.blocksWrite)
        let time: Microseconds = streams.random.pick([
            50 * .millisecond, 2 * .second, 15 * .second, 60 * .second, 120 * .second,
        ])
        schedule(.peerReads(request: number), for: run, after: time)
    }

    mutating func peerReads(_ run: Int, _ number: Int) {
        guard let index = traffic.runs[run].requests.firstIndex(where: { $0.number == number }) else { return }
        traffic.runs[run].requests[index].until = now
        plan(.answerRequests, by: run, after: 50)
    }

    // MARK: Streams

    private mutating func beginStream(_ run: Int, _ kind: FakeStreams.Kind) {
        let stream = streams.stream(kind, at: now)
        guard append(run, until: now + stream.rest, stream) != nil else { return }
        faults.add(.rests)
        plan(.answerRequests, by: run, after: stream.rest)
    }

    /// An app is at work again after it was looked at, and before it is frozen.
    mutating func streamBeforeFreeze(_ run: Int) {
        if !isQuiet, streams.areUsed, streams.random.chance(250) { begin(run) }
    }

    /// The app has sent the pieces whose time had come.
    mutating func restStreams(_ run: Int) {
        for index in traffic.runs[run].requests.indices {
            guard traffic.runs[run].requests[index].until <= now, var stream = traffic.runs[run].requests[index].stream,
                stream.left > 0
            else { continue }
            stream.left -= 1
            stream.resumedAt = nil
            stream.due = now + stream.rest
            traffic.runs[run].requests[index].stream = stream
            traffic.runs[run].requests[index].since = now
            traffic.runs[run].requests[index].until = now + stream.rest
            traffic.runs[run].requests[index].lateness = pastLateness
            traffic.runs[run].requests[index].lateFreezes = traffic.runs[run].lateFreezes
            plan(.answerRequests, by: run, after: stream.rest)
        }
    }

    /// What a look at the thread of a stream finds.
    func sighting(of request: RunTraffic.Request, _ stream: PieceStream, _ run: Int) -> ThreadSighting {
        let frozenSince = runs[run].freezer == .frozen ? runs[run].frozenSince : nil
        let arguments = [UInt64(request.number)]
        let thread = Self.thread(of: request)
        if stream.resumption == .restarted, stream.resumedAt != nil {
            return ThreadSighting(thread: thread, activity: .restarted(arguments: arguments))
        }
        // A freeze begins the call anew, as far as the kernel shows it.
        let isAnew = stream.resumption != .untouched
        let began = (isAnew ? frozenSince ?? stream.resumedAt : nil) ?? request.since
        let counted = stream.resumption == .keptRest ? began : request.since
        var wait = Wait(
            call: Self.restCall + stream.resumption.rawValue, arguments: arguments,
            length: max(0, request.until - counted).duration, due: request.until.duration, stamp: UInt64(began))
        wait.keepsRest = stream.resumption == .keptRest
        return ThreadSighting(thread: thread, activity: .waiting(wait))
    }

    private static func thread(of request: RunTraffic.Request) -> Int { 2 + request.number }

    /// The daemon has looked at the threads: in a frozen app it has found what the kernel keeps.
    mutating func keepRests(_ run: Int) {
        guard streams.areUsed, runs[run].freezer == .frozen else { return }
        let kept = traffic.runs[run].waits.timedWaits.filter(\.wait.keepsRest)
        traffic.runs[run].keptRests = Set(kept.map(\.thread))
    }

    /// The app is thawed. The daemon has corrected the rests that it had found.
    mutating func resumeWaits(_ run: Int) {
        guard streams.areUsed, let frozenSince = runs[run].frozenSince else { return }
        for index in traffic.runs[run].requests.indices {
            let request = traffic.runs[run].requests[index]
            guard let stream = request.stream, stream.resumption != .untouched else { continue }
            traffic.runs[run].requests[index].stream?.resumedAt = now
            faults.add(stream.resumption == .keptRest ? .restIsKept : .callIsRestarted)
            if stream.resumption == .restarted || traffic.runs[run].keptRests.contains(Self.thread(of: request)) {
                continue
            }
            // One that was over at the freeze ends now.
            let rest = max(0, request.until - frozenSince)
            traffic.runs[run].requests[index].until = max(request.until, now + rest)
            plan(.answerRequests, by: run, after: rest)
        }
        traffic.runs[run].keptRests = []
    }

    // MARK: What checkers may expect

    /// Whether short rests have been repeated for so long that they may be ticks.
    func mayBeTick(_ request: RunTraffic.Request, _ run: Int) -> Bool {
        guard let stream = request.stream else { return false }
        let idleTime = apps[runs[run].app].policy.idleTime.microseconds
        return now - stream.began >= max(6 * idleTime, 10 * .second) - idleTime
    }

    /// Whether a look may take the rest of a timer for a short wait, or cannot read it: the daemon that knew has died, or it was
    /// thawed before it was looked at.
    func mayLookShort(_ request: RunTraffic.Request, _ run: Int) -> Bool {
        guard let stream = request.stream, stream.resumedAt != nil else { return false }
        let isKnown = traffic.runs[run].waits.timedWaits.contains {
            $0.thread == Self.thread(of: request) && $0.wait.due == request.until.duration
        }
        return !isKnown
    }
}
