import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// Input that wakes a suspended run (L50).
extension RunController {
    /// Watches the descriptors of all processes. `inputWatched` follows, then `inputArrived` for what arrives, also for what
    /// arrived before.
    /// - Parameter onlyPeers: only for local peers that wait because the buffer towards the app is more than half full.
    func watchInput(attempt: Int, onlyPeers: Bool) {
        stopWatchingInput()
        // It runs again, or is to be killed. While it runs, no duplicate may exist.
        guard isFrozen, reportedAttempt == attempt else { return }
        let budget = context.background.inputs.budget
        do throws(SystemError) {
            let limit = min(DescriptorWatch.maximumProcesses, budget.available)
            let (processes, omitted) = try enclosure.openProcesses(limit: limit, known: process)
            let watch = try DescriptorWatch(
                processes, omitted: omitted, onlyPeers: onlyPeers,
                fullnessMattersBelow: manifest.policy.wakeThreshold.bytes, leftBefore: leftInput.before(attempt),
                limit: budget.limit(with: socket.closer), cgroup: enclosure.cgroupID, budget: budget,
                closer: socket.closer, owner: app.name, ignoredSocket: connections.path)
            watch.wakesOnEnds = manifest.policy.isAttached
            let input = RunInput(watch, of: self, attempt: attempt)
            self.input = input
            input.begin()
        } catch {
            cannotWatch(attempt, error)
        }
    }

    /// Nothing of the run is watched.
    func cannotWatch(_ attempt: Int, _ error: SystemError) {
        stopWatchingInput()
        logWarning("cannot watch for input: \(error)")
        // ENOSPC: fs.epoll.max_user_watches (epoll(7)).
        let isFull = [EMFILE, ENFILE, ENOSPC].contains(error.errno)
        let problem: InputWatch.Problem = isFull ? .tooMany : .failed
        let unwatched = InputWatch.Unwatched(what: InputWatch.Unwatched.process, problem: problem, count: 1)
        send(.traffic(.inputWatched(attempt: attempt, InputWatch(unwatched: [unwatched]))))
    }

    /// Closes all duplicates of the run's descriptors before it returns.
    /// - Parameter isOver: no process of the run is left.
    func stopWatchingInput(isOver: Bool = false) {
        guard let input else { return }
        self.input = nil
        leftInput.record(input.watch, attempt: input.attempt)
        input.stop(isOver: isOver)
    }
}

/// What the last watch over a run has found in the app's own pipes.
struct LeftInputRecord: Defaulted, Hashable {
    private var attempt = 0
    private var before = LeftInput()
    private var found = LeftInput()

    /// What the freeze before this one has found. A freeze has a second watch if `Traffic=` is changed meanwhile: the app has
    /// not run between the two.
    func before(_ attempt: Int) -> LeftInput { attempt == self.attempt ? before : found }

    mutating func record(_ watch: DescriptorWatch, attempt: Int) {
        (before, found) = (watch.leftBefore, watch.left)
        // Without anything left it is as before the first watch.
        self.attempt = before.isEmpty && found.isEmpty ? 0 : attempt
    }
}

extension InputWatch {
    init(_ watch: DescriptorWatch) {
        self.init(
            watched: watch.watched, silent: watch.silent, unwatched: watch.unwatched.map { Unwatched($0) })
    }
}

extension InputWatch.Unwatched {
    fileprivate init(_ unwatched: DescriptorWatch.Unwatched) {
        let problem: InputWatch.Problem =
            switch unwatched.problem {
            case .notPermitted: .notPermitted
            case .notSupported: .notSupported
            case .tooMany: .tooMany
            case .failed: .failed
            }
        self.init(what: unwatched.what, problem: problem, count: unwatched.count)
    }
}

extension Input {
    init(_ input: ArrivedInput) {
        self.init(
            kind: InputKind(input.kind), pid: input.pid, descriptor: input.descriptor, bytes: input.bytes,
            peer: input.peer, isEnd: input.isEnd, isHalfFull: input.isHalfFull,
            source: input.isOwn ? .own : .outside)
    }
}

extension InputKind {
    fileprivate init(_ kind: WatchedKind) {
        switch kind {
        case .listener: self = .listener
        case .stream: self = .stream
        case .datagram: self = .datagram
        case .pipe: self = .pipe
        case .terminal: self = .terminal
        case .timer: self = .timer
        case .event: self = .event
        case .epoll: self = .epoll
        }
    }
}
