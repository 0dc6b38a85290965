import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// What the watches of all suspended apps share: the descriptors that they may use, the ends of processes, and one timer for
/// descriptors that rest. Without input nothing runs: a suspended app costs one source of the loop.
final class InputWatcher {
    /// A descriptor that rests, or a whole watch.
    private struct Rest {
        let token: UInt64
        /// `nil`: the watch.
        let ready: Epoll.Ready?
        let due: Duration
    }
    private struct WeakInput {
        weak var value: RunInput?
    }

    let loop: EventLoop
    let budget: DescriptorBudget
    let describer = SocketDescriber()
    private var inputs: [UInt64: WeakInput] = [:]
    /// Watches that are stopped, with their epoll descriptor and pidfds.
    private var stopped: [RunInput] = []
    private var lastToken: UInt64 = 0
    /// The pidfds of all processes that are watched. A source of the loop for each of them would take longer to add than all
    /// duplicates of a small app.
    private lazy var ends = try? Epoll()
    private var endSource: EventSource?
    /// In the order in which they are due.
    private var resting: [Rest] = []
    private var timer: Systemd.Timer?

    /// The position of a process in its watch has so many bits; `DescriptorWatch.maximumProcesses` fits.
    private static let positionBits: UInt64 = 10

    init(loop: EventLoop, budget: DescriptorBudget) {
        self.loop = loop
        self.budget = budget
    }

    // MARK: The ends of processes

    /// Reports the ends of the watch's processes to it.
    /// - Returns: the number by which the watch is known here.
    func insert(_ input: RunInput) -> UInt64 {
        lastToken += 1
        inputs[lastToken] = WeakInput(value: input)
        if endSource == nil, let ends {
            endSource = try? loop.addDescriptor(ends.descriptor, events: .readable, kind: .processEnd) {
                [weak self] _ in
                TurnResult(self?.processesEnded() ?? true)
            }
        }
        for (position, process) in input.watch.processes.enumerated() {
            // Without it the duplicates of a process that another program kills are closed when the core stops the watch.
            _ = ends?.add(
                process.descriptor.raw, [.readable], data: lastToken << Self.positionBits | UInt64(position))
        }
        return lastToken
    }

    /// Nothing more is reported to the watch. What is left of it goes in a later turn, when the app runs again.
    func remove(_ input: RunInput, _ token: UInt64) {
        inputs[token] = nil
        for process in input.watch.processes { ends?.remove(process.descriptor.raw) }
        stopped.append(input)
        guard stopped.count == 1 else { return }
        loop.work.add { [weak self] in self?.releaseStopped() ?? false }
    }

    /// - Returns: whether there are more.
    private func releaseStopped() -> Bool {
        _ = stopped.popLast()
        return !stopped.isEmpty
    }

    /// - Returns: whether a process has ended.
    private func processesEnded() -> Bool {
        let ended = (try? ends?.take()) ?? []
        for next in ended {
            guard let input = inputs[next.data >> Self.positionBits]?.value else { continue }
            let position = Int(next.data & (1 << Self.positionBits - 1))
            ends?.remove(input.watch.processes[position].descriptor.raw)
            input.watch.processEnded(position)
            // The others stay ready.
            if loop.isTurnOver { break }
        }
        return !ended.isEmpty
    }

    // MARK: Rests

    /// Continues after `DescriptorWatch.interval`.
    /// - Parameter ready: the descriptor that rests; `nil`: the whole watch.
    func rest(_ token: UInt64, _ ready: Epoll.Ready?) {
        resting.append(Rest(token: token, ready: ready, due: loop.now() + DescriptorWatch.interval))
        if resting.count == 1 { armTimer() }
    }

    private func armTimer() {
        if timer == nil { timer = try? loop.makeTimer(kind: .appTimer) { [weak self] _ in self?.endRests() } }
        timer?.arm(at: resting.first?.due)
    }

    private func endRests() {
        let now = loop.now()
        var ended = 0
        for rest in resting {
            guard rest.due <= now, ended == 0 || !loop.isTurnOver else { break }
            ended += 1
            guard let input = inputs[rest.token]?.value else { continue }
            guard let ready = rest.ready else {
                input.endRest()
                continue
            }
            // The system has no memory for it now.
            if !input.watch.watchAgain(ready) { self.rest(rest.token, ready) }
        }
        resting.removeFirst(ended)
        armTimer()
    }
}

/// The watch over the descriptors of one suspended run (L50).
final class RunInput {
    let watch: DescriptorWatch
    private unowned let run: RunController
    let attempt: Int
    private let watcher: InputWatcher
    private var token: UInt64 = 0
    private var isStopped = false
    private var source: EventSource?
    /// While the watch is made: a helper thread has answered.
    private var answerSource: EventSource?
    /// When the helper thread was asked last.
    private var waitsSince = Duration.zero
    /// How many descriptors were looked at until when.
    private var window = (end: Duration.zero, looks: 0)

    /// The most descriptors of one app that are looked at within `DescriptorWatch.interval`: a look takes some µs, and each
    /// can cause an event.
    private static let looksPerInterval = 256
    /// How long a helper thread may take for the targets of one epoll descriptor: 100,000 of them take some 100 ms.
    private static let longestAnswer = Duration.seconds(1)

    init(_ watch: DescriptorWatch, of run: RunController, attempt: Int) {
        self.watch = watch
        self.run = run
        self.attempt = attempt
        watcher = run.context.background.inputs
        let (id, work, describer) = (run.id, run.context.background.work, watcher.describer)
        watch.describe = { inode in work.socket(inode, of: id).flatMap { describer.describe(inode, $0) } }
        watch.ignoredTimers = work.ticks(of: id)
        watch.knownSocket = { work.socket($0, of: id) }
    }

    deinit { watch.close(isOver: true) }

    /// Duplicates the descriptors, in this turn if there are few. `inputWatched` follows.
    func begin() {
        token = watcher.insert(self)
        advance()
    }

    /// Does steps until the turn is over.
    private func advance() {
        while watch.advance() { if watcher.loop.isTurnOver { return advanceLater() } }
        stepsEnded()
    }

    /// Does the next steps in later turns.
    private func advanceLater() {
        watcher.loop.work.add { [weak self] in
            guard let self, !watch.isClosed else { return false }
            if watch.advance() { return true }
            stepsEnded()
            return false
        }
    }

    /// All steps are done, or a helper thread has to answer first.
    private func stepsEnded() {
        if watch.isClosed { return }
        if !watch.isComplete { return awaitAnswer() }
        let found = InputWatch(watch)
        // A program without anything at which input could arrive needs no watch.
        if found.watched == 0 {
            run.stopWatchingInput()
        } else if !attach() {
            return
        }
        run.send(.traffic(.inputWatched(attempt: attempt, found)))
    }

    // MARK: The answer of the helper thread

    private func awaitAnswer() {
        waitsSince = watcher.loop.now()
        if answerSource != nil { return }
        guard let answer = watch.pendingAnswer,
            let source = try? watcher.loop.addDescriptor(
                answer, events: .readable, kind: .inputAnswer,
                handler: { [weak self] _ in
                    self?.answered()
                    return .progress
                })
        else {
            watch.giveUpWaiting()
            return advanceLater()
        }
        answerSource = source
        watcher.rest(token, nil)
    }

    private func answered() {
        // The steps that follow may need several turns, and only one of them may end the making.
        answerSource = nil
        advance()
    }

    /// What waits for a lock that another process holds does not delay the others.
    private func checkAnswer() {
        guard answerSource != nil else { return }
        guard watch.pendingAnswer != nil, watcher.loop.now() - waitsSince >= Self.longestAnswer else {
            return watcher.rest(token, nil)
        }
        answerSource = nil
        watch.giveUpWaiting()
        advanceLater()
    }

    /// Adds the watch to the loop.
    /// - Returns: false if that is impossible. It was reported then.
    private func attach() -> Bool {
        guard let descriptor = watch.descriptor else { return false }
        while true {
            do {
                source = try watcher.loop.addDescriptor(
                    descriptor, events: .readable, kind: .input, share: run.socket.share
                ) { [weak self] _ in TurnResult(self?.arrived() ?? true) }
                // An app that cannot be watched stays awake.
                source?.onSwitchedOff = { [weak self] in self?.cannotWatch() }
                return true
            } catch {
                // The app's epoll descriptors may contain each other more deeply than the kernel allows (epoll_ctl(2), ELOOP).
                // Without memory, or beyond fs.epoll.max_user_watches, it is not they that are too many.
                if error.errno == ELOOP, watch.removeEpolls() { continue }
                run.cannotWatch(attempt, error)
                return false
            }
        }
    }

    private func cannotWatch() { run.cannotWatch(attempt, SystemError(call: "epoll_wait", errno: ENODATA)) }

    /// - Returns: whether a descriptor was ready.
    private func arrived() -> Bool {
        let now = watcher.loop.now()
        if now >= window.end { window = (now + DescriptorWatch.interval, 0) }
        let ready = (try? watch.ready()) ?? []
        for next in ready {
            // The core may have ended the watch for what came before.
            if watch.isClosed { return true }
            if DescriptorWatch.isAnswer(next) {
                report(watch.answers())
                continue
            }
            window.looks += 1
            switch watch.look(next, now: now) {
            case .input(let input): run.send(.traffic(.inputArrived(attempt: attempt, Input(input))))
            case .nothing, .asked: break
            case .rests: watcher.rest(token, next)
            }
        }
        guard window.looks >= Self.looksPerInterval, !watch.isClosed else { return !ready.isEmpty }
        source = nil
        watcher.rest(token, nil)
        return true
    }

    private func report(_ answers: [DescriptorWatch.Look]) {
        for answer in answers {
            if watch.isClosed { return }
            switch answer {
            case .input(let input): run.send(.traffic(.inputArrived(attempt: attempt, Input(input))))
            case .nothing, .asked, .rests: break
            }
        }
    }

    /// What has arrived while the watch rested is found at once.
    func endRest() {
        if !watch.isComplete { return checkAnswer() }
        if source == nil { _ = attach() }
    }

    /// Closes all duplicates, and ends the watch.
    /// - Parameter isOver: the processes have ended.
    func stop(isOver: Bool = false) {
        guard !isStopped else { return }
        isStopped = true
        // Before the duplicates are closed. They stay in the set as long as the app has copies of them, and the loop would find it
        // ready again and again, with nothing to take from it.
        source = nil
        answerSource = nil
        watcher.remove(self, token)
        watch.close(isOver: isOver)
    }
}
