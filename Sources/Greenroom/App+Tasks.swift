import CGreenroom

extension App {
    /// Runs the body as a background task: while it runs the app is not suspended, within its background time (30s by default).
    ///
    /// ```swift
    /// try await App.shared.withBackgroundTask(named: "upload") {
    ///     try await upload(file)
    /// }
    /// ```
    ///
    /// When the background time is nearly over (5s before, by default), the body is cancelled, as a `Task` is. This needs an app that
    /// has started (`App.start()`). The body runs on the caller's actor. Without Greenroom it just runs.
    ///
    /// - Parameters:
    ///   - name: 1 to 128 bytes, for people: `greenroomctl status` shows it. A longer name is truncated.
    ///   - isolation: the caller's actor.
    ///   - body: the work.
    /// - Throws: `GreenroomError.refused` with a sentence if the app has no background time, `GreenroomError.taskExpired` if the
    ///   body ended with `CancellationError` because of that; otherwise what the body throws.
    public func withBackgroundTask<Value>(
        named name: String, isolation: isolated (any Actor)? = #isolation,
        @_implicitSelfCapture _ body: nonisolated(nonsending) @escaping () async throws -> Value
    ) async throws -> Value {
        let task = try await begin(name)
        defer { task.end() }
        let work = Task {
            // Captured, so that the body runs on the caller's actor.
            _ = isolation
            return Unchecked(value: try await body())
        }
        task.onExpiration { work.cancel() }
        do {
            return try await withTaskCancellationHandler {
                try await work.value.value
            } onCancel: {
                work.cancel()
            }
        } catch is CancellationError where task.isExpiring && !Task.isCancelled {
            throw GreenroomError.taskExpired(name)
        }
    }

    /// Runs the body as a background task, in a program without Swift concurrency. While it runs the app is not suspended.
    ///
    /// ```swift
    /// try App.shared.withBackgroundTask(named: "index") { task in
    ///     while !task.isExpiring, let next = queue.next() { index(next) }
    /// }
    /// ```
    ///
    /// The body finishes soon when `BackgroundTask.isExpiring` becomes true.
    ///
    /// - Parameters:
    ///   - name: 1 to 128 bytes, for people: `greenroomctl status` shows it. A longer name is truncated.
    ///   - body: the work.
    /// - Throws: `GreenroomError.refused` with a sentence if the app has no background time; otherwise what the body throws.
    public func withBackgroundTask<Value>(
        named name: String, _ body: (_ task: BackgroundTask) throws -> Value
    ) throws -> Value {
        let task = try beginBackgroundTask(named: name)
        defer { task.end() }
        return try body(task)
    }

    /// Begins a background task, for work that is no block of code. It ends with `BackgroundTask.end()`, or when the object is
    /// released.
    ///
    /// - Parameters:
    ///   - name: 1 to 128 bytes, for people: `greenroomctl status` shows it. A longer name is truncated.
    ///   - expirationHandler: called when the background time is nearly over, on a thread of the library. It has to be short.
    /// - Throws: `GreenroomError.refused` with a sentence if the app has no background time.
    public func beginBackgroundTask(
        named name: String, expirationHandler: (@Sendable () -> Void)? = nil
    ) throws(GreenroomError) -> BackgroundTask {
        let request = TaskRequest(name, connection)
        let task = try connection.perform { request.begin($0) }.get().get()
        if let expirationHandler { task.onExpiration(expirationHandler) }
        return task
    }

    /// The background time that is left to all tasks together; `nil` without a limit, as in the foreground. Waits for greenroomd.
    public var remainingBackgroundTime: Duration? {
        get throws(GreenroomError) {
            let result = connection.perform { library -> Result<Duration?, GreenroomError> in
                Result { () throws(GreenroomError) in
                    var remaining: UInt64 = 0
                    try check(greenroom_remaining_time(library, &remaining), library)
                    return Duration(limit: remaining)
                }
            }
            return try result.get().get()
        }
    }

    private nonisolated(nonsending) func begin(_ name: String) async throws(GreenroomError) -> BackgroundTask {
        let request = TaskRequest(name, connection)
        return try await connection.performAsync { request.begin($0) }.get().get()
    }
}

/// A background task that is to begin.
private struct TaskRequest: Sendable {
    /// As `TaskName` of greenroomd: at most 128 bytes, without control characters.
    let name: String
    let connection: Connection

    init(_ name: String, _ connection: Connection) {
        self.name = shortened(name)
        self.connection = connection
    }

    /// Begins it, on the thread of the connection.
    func begin(_ library: OpaquePointer) -> Result<BackgroundTask, GreenroomError> {
        let expiration = Expiration()
        return Result { () throws(GreenroomError) in
            let number = try connection.beginTask(name, expiration, library)
            return BackgroundTask(name, number, expiration, connection)
        }
    }
}

/// A name or a title as greenroomd takes it: at most 128 bytes, without control characters.
func shortened(_ text: String) -> String {
    var scalars = String.UnicodeScalarView(
        text.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : $0 })
    var size = scalars.reduce(0) { $0 + UTF8.width($1) }
    while size > 128, let last = scalars.popLast() { size -= UTF8.width(last) }
    return String(scalars)
}

/// A value that passes from the task of a body to the caller that waits for it, on the same actor.
private struct Unchecked<Value>: @unchecked Sendable {
    let value: Value
}
