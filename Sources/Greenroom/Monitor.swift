import Glibc

/// A value behind a lock, and a condition that threads wait for.
///
/// The lock is held for some instructions only: no call of the C library, and no code of the app, runs under it.
final class Monitor<State>: @unchecked Sendable {
    // @unchecked: `state` is used only while `mutex` is held.
    private var state: State
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

    init(_ state: State) {
        self.state = state
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    /// Calls the body with the value, and wakes the threads that wait.
    func update<Value, Failure: Error>(_ body: (inout State) throws(Failure) -> Value) throws(Failure) -> Value {
        pthread_mutex_lock(mutex)
        defer {
            pthread_cond_broadcast(condition)
            pthread_mutex_unlock(mutex)
        }
        return try body(&state)
    }

    /// Calls the body until it returns a value: now, and after each update.
    ///
    /// - Parameter end: when to stop waiting; `nil`: never.
    /// - Returns: `nil` if the time was over first.
    func wait<Value>(until end: ContinuousClock.Instant? = nil, for body: (inout State) -> Value?) -> Value? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let value = body(&state) { return value }
            guard let end else {
                pthread_cond_wait(condition, mutex)
                continue
            }
            let remaining = ContinuousClock.now.duration(to: end)
            guard remaining > .zero else { return nil }
            waitOnce(remaining)
        }
    }

    /// Waits for an update, for at most this time, or shorter.
    private func waitOnce(_ time: Duration) {
        // Two numbers instead of a `timespec`, whose members are not visible to every build of this module.
        var end = (seconds: 0, nanoseconds: 0)
        withUnsafeMutablePointer(to: &end) { numbers in
            let pointer = UnsafeMutableRawPointer(numbers).assumingMemoryBound(to: timespec.self)
            clock_gettime(CLOCK_MONOTONIC, pointer)
            // No wait lasts for centuries: the sum must not overflow.
            let wait = min(time, .seconds(1_000_000)).components
            let nanoseconds = numbers.pointee.nanoseconds + Int(wait.attoseconds / 1_000_000_000)
            numbers.pointee.seconds += Int(wait.seconds) + nanoseconds / 1_000_000_000
            numbers.pointee.nanoseconds = nanoseconds % 1_000_000_000
            pthread_cond_timedwait(condition, mutex, pointer)
        }
    }
}

/// Writes a warning to standard error, which the journal takes as one of this app.
func logWarning(_ text: String) {
    var line = Array("greenroom: \(text)\n".utf8)[...]
    while !line.isEmpty {
        let count = line.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
        guard count > 0 else { return }
        line = line.dropFirst(count)
    }
}
