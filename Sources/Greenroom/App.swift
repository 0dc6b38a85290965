import Glibc

/// The app, as greenroomd sees it: a process that takes part in its lifecycle.
///
/// A process has one, `App.shared`. It restores its state, calls `run(_:)` with a delegate (or reads `events`), and saves its state
/// when it enters the background.
///
/// ```swift
/// import Greenroom
///
/// final class Reader: AppDelegate {
///     var page = "1"
///
///     func restoreState(_ state: RestorationState) { page = state.text ?? page }
///     func didEnterBackground() throws { try App.shared.save(page) }
/// }
///
/// App.shared.run(Reader())
/// ```
///
/// Without Greenroom the same program runs: tasks do nothing, the state is the file `restoration-state` in the first folder of
/// `STATE_DIRECTORY` (or is not kept), the app becomes active at once, and SIGTERM or Ctrl-C ends `run(_:)`.
///
/// Every thread and every actor may use the object. A call that waits for greenroomd takes at most 10s. The library has one thread
/// of its own. Handlers run where `run(_:)`, `handleEvents(with:)` or the loop over `events` runs. Only the expiration handler of
/// `beginBackgroundTask(named:expirationHandler:)` runs on the thread of the library.
public final class App: Sendable {
    /// The app of this process.
    public static let shared = App()

    /// How and why this process was launched.
    public let launch: Launch

    let connection: Connection
    private let state = Monitor(State())

    private struct State {
        var handled: AppEvent.Kinds = .all
        var hasStarted = false
    }

    private init() {
        launch = Launch()
        connection = Connection()
        // Answers and reports that were made just before the end of the process are sent.
        atexit { App.shared.connection.close() }
    }

    /// Whether greenroomd has launched this process. Otherwise the library does without it.
    public var isInGreenroom: Bool { !connection.isInert }

    // MARK: Running

    /// The kinds of events that the app handles. For others greenroomd uses the signals of the manifest.
    ///
    /// Set them before `run(_:)`; a change later counts for later events. By default all kinds are handled.
    public var handledEvents: AppEvent.Kinds {
        get { state.update { $0.handled } }
        set {
            let hasStarted = state.update { state in
                state.handled = newValue
                return state.hasStarted
            }
            if hasStarted { connection.setHandled(newValue) }
        }
    }

    /// Runs the app: restores its state, reports that it is ready, and calls the delegate for each event, until the app has to end
    /// or `stop()` is called.
    ///
    /// The delegate is called on this thread.
    public func run(_ delegate: some AppDelegate) {
        while dispatch(to: delegate, for: nil) {}
    }

    /// As `run(_:)`, in a program with Swift concurrency.
    ///
    /// ```swift
    /// await App.shared.handleEvents(with: Reader())
    /// ```
    ///
    /// The delegate is called on the actor that awaits this, which is free while no event is handled. Cancelling the task ends it,
    /// but not the app: it continues with the next call.
    public nonisolated(nonsending) func handleEvents(with delegate: some AppDelegate) async {
        launch(delegate)
        for await event in events { delegate.handle(event) }
    }

    /// Calls the delegate for the events that wait, and those that arrive within a time. For programs with a loop of their own.
    ///
    /// ```swift
    /// while App.shared.dispatch(to: game, for: .milliseconds(16)) {
    ///     game.drawFrame()
    /// }
    /// ```
    ///
    /// Use it from one thread at a time. The first call finishes launching.
    ///
    /// - Parameters:
    ///   - delegate: handles the events.
    ///   - time: for how long to wait for events; `nil`: until the app has to end. By default it does not wait.
    /// - Returns: whether the app continues to run.
    public func dispatch(to delegate: some AppDelegate, for time: Duration? = .zero) -> Bool {
        launch(delegate)
        let end = time.map { ContinuousClock.now + $0 }
        while let delivery = connection.nextDelivery(until: end) {
            delegate.handle(delivery.event)
            finish(delivery)
        }
        guard connection.hasEnded else { return true }
        connection.flush()
        return false
    }

    /// A descriptor that is readable (`POLLIN`) while `dispatch(to:for:)` has something to do, for a loop that polls others as well.
    ///
    /// It stays the same, and belongs to the library: do not read from it, and do not close it.
    public var descriptor: Int32 { connection.descriptor }

    /// The events of the app for a program with Swift concurrency. The first one that is asked for finishes launching.
    ///
    /// ```swift
    /// for await event in App.shared.events {
    ///     switch event {
    ///     case .didEnterBackground: try? App.shared.save(page)
    ///     case .didReceivePush(let push): Task { push.complete(await feed.load(push.payload)) }
    ///     default: break
    ///     }
    /// }
    /// ```
    ///
    /// The loop ends when the app has to end. An event that has to be answered is answered when the loop asks for the next event,
    /// or is left; a wake with `Wake.complete(_:)`. Two loops at a time share the events.
    public var events: AppEvents { AppEvents(app: self) }

    /// Finishes launching: connects, and reports that the app is ready. Events are kept until they are asked for.
    ///
    /// `run(_:)`, `dispatch(to:for:)` and `events` do it first, so a program calls it only to be ready earlier. It restores the state
    /// before: a delegate is not called for the launch afterwards.
    public func start() {
        let kinds = state.update { state in exchange(&state.hasStarted, true) ? nil : state.handled }
        if let kinds { connection.start(kinds) }
    }

    /// Ends `run(_:)` and the loop over `events`, and tells Greenroom that the app ends by itself.
    public func stop() { connection.stop() }

    /// Calls the delegate for the steps of the launch, unless the app has started.
    private func launch(_ delegate: some AppDelegate) {
        guard !state.update({ $0.hasStarted }) else { return }
        delegate.willFinishLaunching(launch)
        do {
            if let saved = try restore(), delegate.shouldRestoreState(saved) { try delegate.restoreState(saved) }
        } catch {
            logWarning("the state is not restored: \(error)")
        }
        do { try delegate.didFinishLaunching(launch) } catch { logWarning("didFinishLaunching failed: \(error)") }
        start()
    }

    /// Answers an event that was handled, unless it is a wake, which its handler completes.
    func finish(_ delivery: Connection.Delivery) {
        guard delivery.event.isAnswered else { return }
        connection.answer(delivery.serial)
        if case .willTerminate = delivery.event { connection.end() }
    }
}
