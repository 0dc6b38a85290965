import CGreenroom
import Glibc

/// The thread of the library. It owns the object of the C library, which one thread at a time may use.
///
/// Every other thread leaves commands for it. So calls of the app may come from any thread and from Swift concurrency, events are
/// read while the app is at work, and a task learns that it expires while its thread computes.
final class Connection: @unchecked Sendable {
    // @unchecked: `library`, `tasks` and `lastTask` are used on the thread alone; the rest is constant, or a Monitor.
    typealias Command = @Sendable (_ library: OpaquePointer) -> Void

    /// An event that the app has not handled yet.
    struct Delivery: Sendable {
        let serial: UInt64
        let event: AppEvent
    }

    private struct State {
        var commands: [Command] = []
        var deliveries: [Delivery] = []
        /// The tasks of Swift concurrency that wait for a delivery.
        var waiters: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var lastWaiter: UInt64 = 0
        /// The object for `greenroom_wake()`; `nil` before and after its life.
        var awake: Wakeable?
        var thread: pthread_t?
        /// The app takes part: events are read.
        var hasStarted = false
        /// No more events come after those that wait.
        var hasEnded = false
        var isClosed = false
        /// Whether `descriptor` is readable.
        var isReadable = false

        var isReading: Bool { hasStarted && !hasEnded && deliveries.count < Connection.maximumDeliveries }
    }

    /// The object of the C library, for the one function that any thread may call.
    private struct Wakeable: @unchecked Sendable {
        let library: OpaquePointer
    }

    /// With this many events that the app has not handled, the library stops reading. greenroomd then keeps 256 more.
    private static let maximumDeliveries = 1024
    /// With this many commands that wait, reports are dropped. The C library refuses as many calls.
    private static let maximumReports = 1000
    /// For how long the end of the process waits until what it has sent has arrived: the second that `greenroom_app_free()` waits,
    /// and one for a call before it.
    private static let closingTime = Duration.seconds(2)

    /// Readable while an event waits for the app, and when it has to end.
    let descriptor: Int32
    /// The other end of the socket pair. It has written one byte while `descriptor` is to be readable.
    private let writer: Int32
    private let process = getpid()
    private let state = Monitor(State())
    private var library: OpaquePointer?
    private var tasks: [UInt64: (task: OpaquePointer, expiration: Expiration)] = [:]
    private var lastTask: UInt64 = 0

    /// Creates the object and its thread. The connection is made with the first call that needs it.
    ///
    /// Without memory and descriptors, or with another address than that of a Unix socket in GREENROOM_BUS_ADDRESS, the process
    /// ends, as there is no app without this.
    init() {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { fatalError("greenroom: no descriptors: error \(errno)") }
        (descriptor, writer) = (ends[0], ends[1])
        let result = greenroom_app_new(&library)
        guard result >= 0, let library else {
            fatalError(
                result == -EINVAL
                    ? "greenroom: GREENROOM_BUS_ADDRESS is not the address of a Unix socket (unix:path=…)"
                    : "greenroom: no memory or no descriptors: error \(-result)")
        }
        greenroom_set_library(library, "Swift \(libraryVersion)")
        let wakeable = Wakeable(library: library)
        state.update { $0.awake = wakeable }
        startThread()
    }

    /// Starts the thread. Signals are left to the threads of the program, except those that a thread causes itself.
    private func startThread() {
        var blocked = sigset_t()
        var before = sigset_t()
        sigfillset(&blocked)
        for number in [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT] { sigdelset(&blocked, number) }
        pthread_sigmask(SIG_SETMASK, &blocked, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        var thread = pthread_t()
        let failure = pthread_create(
            &thread, nil,
            { context in
                Unmanaged<Connection>.fromOpaque(context!).takeUnretainedValue().work()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        guard failure == 0 else { fatalError("greenroom: no thread: error \(failure)") }
        pthread_detach(thread)
    }

    /// Whether Greenroom did not launch this process, or the process is a child of the one that it launched.
    var isInert: Bool {
        switch perform({ greenroom_is_inert($0) }) {
        case .success(let result): result != 0
        case .failure: true
        }
    }

    // MARK: Commands, from any thread

    /// Leaves a command for the thread. Without a thread it is dropped.
    ///
    /// - Returns: whether it will be run.
    @discardableResult
    func post(_ command: @escaping Command) -> Bool {
        guard !isForked else { return false }
        return state.update { state in
            guard !state.isClosed else { return false }
            state.commands.append(command)
            if let awake = state.awake { greenroom_wake(awake.library) }
            return true
        }
    }

    /// Leaves a command that may be lost, because the next one of its kind says the same or more.
    ///
    /// So a program that reports in a loop uses no more memory while greenroomd is away.
    func report(_ command: @escaping Command) {
        guard !isForked, state.update({ $0.commands.count }) < Self.maximumReports else { return }
        post(command)
    }

    /// Runs a command on the thread and waits for its result.
    func perform<Value: Sendable>(
        _ body: @escaping @Sendable (_ library: OpaquePointer) -> Value
    ) -> Result<Value, GreenroomError> {
        if !isForked, isOnThread, let library { return .success(body(library)) }
        let result = Monitor<Value?>(nil)
        let isPosted = post { library in
            let value = body(library)
            result.update { $0 = value }
        }
        guard isPosted, let value = result.wait(for: { $0 }) else { return .failure(.ended) }
        return .success(value)
    }

    /// As `perform`, without blocking a thread of Swift concurrency.
    nonisolated(nonsending) func performAsync<Value: Sendable>(
        _ body: @escaping @Sendable (_ library: OpaquePointer) -> Value
    ) async -> Result<Value, GreenroomError> {
        await withCheckedContinuation { continuation in
            if !post({ continuation.resume(returning: .success(body($0))) }) {
                continuation.resume(returning: .failure(.ended))
            }
        }
    }

    /// Whether this process is a child made by fork. It has no thread, and the lock may have been held when it was made.
    private var isForked: Bool { getpid() != process }

    private var isOnThread: Bool {
        state.update { $0.thread }.map { pthread_equal($0, pthread_self()) != 0 } ?? false
    }

    // MARK: Events, from any thread

    /// Begins to read events of these kinds. Before, the app is launching.
    func start(_ kinds: AppEvent.Kinds) {
        _ = perform { [self] library in
            handle(kinds, library)
            // Another object of the process may do it.
            _ = greenroom_catch_signals(library)
            let result = greenroom_start(library)
            if result < 0 { logWarning("cannot take part: error \(-result)") }
            state.update { $0.hasStarted = true }
        }
    }

    /// Changes the kinds of events that the app gets.
    func setHandled(_ kinds: AppEvent.Kinds) {
        post { [self] in handle(kinds, $0) }
    }

    /// Waits for the next event.
    ///
    /// - Parameter end: when to stop waiting; `nil`: never.
    /// - Returns: `nil` if the time was over first, or the app has to end (`hasEnded`).
    func nextDelivery(until end: ContinuousClock.Instant?) -> Delivery? {
        guard !isForked else { return nil }
        return state.wait(until: end) { state in self.take(&state) } ?? nil
    }

    /// Waits for the next event; `nil` if the app has to end, or the caller's task was cancelled.
    nonisolated(nonsending) func nextDelivery() async -> Delivery? {
        while !isForked, !Task.isCancelled {
            if let found = state.update({ take(&$0) }) { return found }
            await nextChange()
        }
        return nil
    }

    /// Whether no more events come.
    var hasEnded: Bool { isForked || state.update { $0.hasEnded && $0.deliveries.isEmpty } }

    /// Discards the events that wait, because the app has to end.
    func end() {
        guard !isForked else { return }
        // A wake that is discarded here answers, so it is released without the lock.
        _ = state.update { state in
            end(&state)
            return exchange(&state.deliveries, [])
        }
    }

    /// Ends the app by itself.
    func stop() {
        post { _ = greenroom_stop($0) }
        end()
    }

    /// Answers an event. Without a thread the process is about to end.
    func answer(_ serial: UInt64, _ result: Int32 = Int32(GREENROOM_NEW_DATA)) {
        post { _ = greenroom_answer($0, serial, result) }
    }

    /// Sends what is left, for 1s at most, after the app has ended.
    func flush() { _ = perform { greenroom_dispatch($0) } }

    /// As `flush`, without blocking a thread of Swift concurrency.
    nonisolated(nonsending) func flushAsync() async { _ = await performAsync { greenroom_dispatch($0) } }

    /// Sends what is left and closes the connection, at the end of the process.
    func close() {
        guard !isForked, !isOnThread else { return }
        state.update { state in
            // Commands that wait are run before: the thread frees the object when none is left.
            state.isClosed = true
            if let awake = state.awake { greenroom_wake(awake.library) }
        }
        _ = state.wait(until: .now + Self.closingTime) { $0.awake == nil ? true : nil }
    }

    /// The first event that waits, `.some(nil)` if none follows, or `nil` if there is none yet.
    private func take(_ state: inout State) -> Delivery?? {
        guard !state.deliveries.isEmpty else { return state.hasEnded ? .some(nil) : nil }
        let first = state.deliveries.removeFirst()
        if state.deliveries.isEmpty, !state.hasEnded, exchange(&state.isReadable, false) {
            var byte: UInt8 = 0
            read(descriptor, &byte, 1)
        }
        return first
    }

    private nonisolated(nonsending) func nextChange() async {
        let number = state.update { state in
            state.lastWaiter += 1
            return state.lastWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.update { state in
                    guard state.deliveries.isEmpty, !state.hasEnded else { return true }
                    state.waiters[number] = continuation
                    return false
                }
                if isOver {
                    continuation.resume()
                } else if Task.isCancelled {
                    resumeWaiter(number)
                }
            }
        } onCancel: {
            resumeWaiter(number)
        }
    }

    private func resumeWaiter(_ number: UInt64) {
        state.update { $0.waiters.removeValue(forKey: number) }?.resume()
    }

    private func end(_ state: inout State) {
        state.hasEnded = true
        announce(&state)
    }

    private func announce(_ state: inout State) {
        if !exchange(&state.isReadable, true) {
            var byte: UInt8 = 0
            write(writer, &byte, 1)
        }
        // A continuation only schedules its task, so it may be resumed under the lock.
        for waiter in state.waiters.values { waiter.resume() }
        state.waiters = [:]
    }

    // MARK: The thread

    private func work() {
        state.update { $0.thread = pthread_self() }
        while let library {
            for command in state.update({ exchange(&$0.commands, []) }) { command(library) }
            let (isReading, isOver) = state.update { ($0.isReading, $0.isClosed && $0.commands.isEmpty) }
            if isOver {
                free(library)
            } else if isReading {
                greenroom_wait(library, UInt64.max)
                dispatch(library)
            } else {
                _ = state.wait { $0.isReading || $0.isClosed || !$0.commands.isEmpty ? true : nil }
            }
        }
    }

    private func dispatch(_ library: OpaquePointer) {
        let result = greenroom_dispatch(library)
        guard result <= 0 else { return }
        if result < 0 { logWarning("no more events: error \(-result)") }
        state.update { end(&$0) }
    }

    private func free(_ library: OpaquePointer) {
        self.library = nil
        greenroom_app_free(library)
        state.update { $0.awake = nil }
    }

    private func handle(_ kinds: AppEvent.Kinds, _ library: OpaquePointer) {
        var number: UInt32 = 1
        while greenroom_kind_to_string(greenroom_kind(number)) != nil {
            let kind = greenroom_kind(number)
            let handler: greenroom_handler_t? = kinds.contains(kind) ? { receiveEvent($0, $1, $2) } : nil
            greenroom_set_handler(library, kind, handler, Unmanaged.passUnretained(self).toOpaque())
            number += 1
        }
    }

    /// Takes an event of the C library.
    ///
    /// - Returns: what its handler returns.
    fileprivate func receive(_ event: greenroom_event) -> Int32 {
        guard let read = AppEvent(event, self) else { return Int32(GREENROOM_NEW_DATA) }
        let isAccepted = state.update { state in
            // An app that has to end handles nothing more, and answers nothing.
            guard !state.hasEnded else { return false }
            state.deliveries.append(Delivery(serial: event.serial, event: read))
            announce(&state)
            return true
        }
        return Int32(read.isAnswered || read.isWake || !isAccepted ? GREENROOM_LATER : GREENROOM_NEW_DATA)
    }

    // MARK: Background tasks, on the thread

    /// Begins a background task.
    ///
    /// - Returns: its number, for `endTask`.
    func beginTask(_ name: String, _ expiration: Expiration, _ library: OpaquePointer) throws(GreenroomError) -> UInt64
    {
        var task: OpaquePointer?
        try check(greenroom_task_begin(library, name, &task), library)
        guard let task else { throw .ended }
        lastTask += 1
        tasks[lastTask] = (task, expiration)
        greenroom_task_set_expired(
            task, { Unmanaged<Expiration>.fromOpaque($1!).takeUnretainedValue().begin() },
            Unmanaged.passUnretained(expiration).toOpaque())
        return lastTask
    }

    /// Reports the progress of a background task. An error is in the app's log.
    func report(_ done: UInt64, of total: UInt64, title: String, _ number: UInt64) {
        guard let task = tasks[number] else { return }
        greenroom_task_progress(task.task, done, total, title)
    }

    /// Ends a background task. It is no error to end it twice.
    func endTask(_ number: UInt64) {
        guard let task = tasks.removeValue(forKey: number) else { return }
        greenroom_task_end(task.task)
    }
}

private func receiveEvent(
    _ library: OpaquePointer?, _ event: UnsafePointer<greenroom_event>?, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let event, let context else { return Int32(GREENROOM_FAILED) }
    return Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue().receive(event.pointee)
}

/// Throws the error that a function of the C library has returned.
func check(_ result: Int32, _ library: OpaquePointer) throws(GreenroomError) {
    guard result < 0 else { return }
    let sentence = text(greenroom_last_error(library))
    let name = text(greenroom_last_error_name(library))
    switch -result {
    case EPERM: throw .refused(name: name, sentence: sentence)
    case EMSGSIZE, ENOBUFS: throw .refused(name: GreenroomError.limitsExceeded, sentence: sentence)
    case ETIMEDOUT: throw .unavailable(sentence)
    case let number: throw .system(number, sentence.isEmpty ? text(strerror(number)) : sentence)
    }
}
