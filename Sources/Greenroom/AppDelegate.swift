/// Handles the events of the app, with the names that UIKit's app delegate has.
///
/// All methods have an implementation that does nothing: an app implements those that it needs. If they are in an extension with the
/// conformance, as here, the compiler warns of one that is misspelled, which would not be called.
///
/// ```swift
/// import Greenroom
///
/// final class Reader {
///     var page = "1"
/// }
///
/// extension Reader: AppDelegate {
///     func restoreState(_ state: RestorationState) { page = state.text ?? page }
///     func didEnterBackground() throws { try App.shared.save(page) }
/// }
///
/// App.shared.run(Reader())
/// ```
///
/// The methods are called one after the other: by `App.run(_:)` on its thread, or by `App.handleEvents(with:)` on the actor that
/// awaits it. So a delegate needs no locks and need not be `Sendable`. If a method throws, the error is logged, the event is
/// answered, and a wake has failed.
///
/// The delegate of an app whose state belongs to the main actor says so: `final class Reader: @MainActor AppDelegate`.
public protocol AppDelegate: AnyObject {
    /// The process was started; its state is not restored yet.
    func willFinishLaunching(_ launch: Launch)

    /// Returns whether the state that an earlier process has saved is to be restored. By default it is.
    ///
    /// The state that was saved is not removed by this; `App.dropState()` does that.
    func shouldRestoreState(_ state: RestorationState) -> Bool

    /// Restores the state that an earlier process has saved. Not called if there is none.
    func restoreState(_ state: RestorationState) throws

    /// The last step of the launch. After the return the app is ready.
    ///
    /// It has to be so within the launch deadline (`LaunchDeadlineSec=`, 5s by default).
    func didFinishLaunching(_ launch: Launch) throws

    /// The app is in front and gets input.
    func didBecomeActive(cause: ActivationCause) throws

    /// The app will stop being active.
    func willResignActive(cause: ResignationCause) throws

    /// The app returns from the background, and will become active.
    func willEnterForeground() throws

    /// The app has left the foreground: save the state. The return is the answer, after which the app may be suspended.
    ///
    /// It has to come within the background deadline (`BackgroundDeadlineSec=`, 5s by default), or the app is killed.
    func didEnterBackground() throws

    /// The app will be ended. After the return it may be killed, and `App.run(_:)` returns.
    ///
    /// - Parameter reason: `requested`, `shutdown`, `exitsOnSuspend`, `unloaded` (`UnloadAfterSec=`) or `jetsam`, or the signal that came,
    ///   `SIGTERM` or `SIGINT`. A string, because versions to come may have more.
    func willTerminate(reason: String) throws

    /// Memory is short: release what can be made again.
    func didReceiveMemoryWarning(level: MemoryLevel) throws

    /// The background time ends while these tasks are open.
    func tasksWillExpire(names: [String], remaining: Duration) throws

    /// The app is to open a URL.
    ///
    /// At a launch it comes between `didFinishLaunching` and `didBecomeActive`, later between `willEnterForeground` and that.
    func open(url: String) throws

    /// A push has arrived. Returns what came of it; with `later` the app calls `Wake.complete(_:)`, within 30s.
    func didReceivePush(_ push: Wake) throws -> WakeResult

    /// The app was woken for another reason than a push. Returns what came of it, as `didReceivePush`.
    func didWake(_ wake: Wake) throws -> WakeResult

    /// Something has changed, for example the locale.
    func didReceiveNotification(kind: String, payload: String) throws

    /// The app will be suspended at once. The method may be cut short by that.
    func willSuspend() throws

    /// The app was suspended. `changed` has the kinds of notifications that follow.
    func didResume(after time: Duration, changed: [String]) throws

    /// One of the scenes of the app has changed.
    func sceneDidChange(_ scene: String, _ notice: SceneNotice) throws

    /// A picture of the app is wanted, which is shown while the app is not. `nil`: there is nothing to show.
    ///
    /// It is called when the app has answered that it is in the background, and after a wake that has led to new data. The app is
    /// suspended 500ms later at the latest.
    func takeSnapshot() throws -> Snapshot?

    /// A picture of a scene is wanted. `nil`: there is nothing to show.
    ///
    /// It is called when the scene has entered the background, and after a wake that has led to new data for the one that was in
    /// front last.
    func takeSnapshot(scene: String) throws -> Snapshot?

    /// A user has closed these scenes, now or while the app did not run: they do not come back.
    func didDiscardScenes(_ scenes: [String]) throws

    /// The app will be suspended: take back what it advertises, such as a service on the network, a lease or a name on a bus.
    ///
    /// The suspension waits for the return. `didResume` follows, also if the app is not suspended after all: advertise again.
    func withdraw() throws
}

extension AppDelegate {
    /// Does nothing.
    public func willFinishLaunching(_ launch: Launch) {}
    /// Returns true.
    public func shouldRestoreState(_ state: RestorationState) -> Bool { true }
    /// Does nothing.
    public func restoreState(_ state: RestorationState) {}
    /// Does nothing.
    public func didFinishLaunching(_ launch: Launch) {}
    /// Does nothing.
    public func didBecomeActive(cause: ActivationCause) {}
    /// Does nothing.
    public func willResignActive(cause: ResignationCause) {}
    /// Does nothing.
    public func willEnterForeground() {}
    /// Does nothing.
    public func didEnterBackground() {}
    /// Does nothing.
    public func willTerminate(reason: String) {}
    /// Does nothing.
    public func didReceiveMemoryWarning(level: MemoryLevel) {}
    /// Does nothing.
    public func tasksWillExpire(names: [String], remaining: Duration) {}
    /// Does nothing.
    public func open(url: String) {}
    /// Returns `noData`.
    public func didReceivePush(_ push: Wake) -> WakeResult { .noData }
    /// Returns `noData`.
    public func didWake(_ wake: Wake) -> WakeResult { .noData }
    /// Does nothing.
    public func didReceiveNotification(kind: String, payload: String) {}
    /// Does nothing.
    public func willSuspend() {}
    /// Does nothing.
    public func didResume(after time: Duration, changed: [String]) {}
    /// Does nothing.
    public func sceneDidChange(_ scene: String, _ notice: SceneNotice) {}
    /// Returns `nil`.
    public func takeSnapshot() -> Snapshot? { nil }
    /// Returns `nil`.
    public func takeSnapshot(scene: String) -> Snapshot? { nil }
    /// Does nothing.
    public func didDiscardScenes(_ scenes: [String]) {}
    /// Does nothing.
    public func withdraw() {}

    /// Calls the method for an event. A wake is completed with what it returns.
    func handle(_ event: AppEvent) {
        do {
            switch event {
            case .didBecomeActive(let cause): try didBecomeActive(cause: cause)
            case .willResignActive(let cause): try willResignActive(cause: cause)
            case .willEnterForeground: try willEnterForeground()
            case .didEnterBackground: try didEnterBackground()
            case .willTerminate(let reason, _): try willTerminate(reason: reason)
            case .didReceiveMemoryWarning(let level): try didReceiveMemoryWarning(level: level)
            case .tasksWillExpire(let names, let remaining): try tasksWillExpire(names: names, remaining: remaining)
            case .open(let url): try open(url: url)
            case .didReceivePush(let push): push.complete(try didReceivePush(push))
            case .didWake(let wake): wake.complete(try didWake(wake))
            case .didReceiveNotification(let kind, let payload):
                try didReceiveNotification(kind: kind, payload: payload)
            case .willSuspend: try willSuspend()
            case .didResume(let time, let changed): try didResume(after: time, changed: changed)
            case .scene(let scene, let notice): try sceneDidChange(scene, notice)
            case .takeSnapshot: if let snapshot = try takeSnapshot() { try App.shared.save(snapshot) }
            case .withdraw: try withdraw()
            case .didDiscardScenes(let scenes): try didDiscardScenes(scenes)
            case .takeSceneSnapshot(let scene):
                if let snapshot = try takeSnapshot(scene: scene) { try App.shared.save(snapshot, scene: scene) }
            }
        } catch {
            logWarning("\(event.name) failed: \(error)")
            switch event {
            case .didReceivePush(let wake), .didWake(let wake): wake.complete(.failed)
            default: break
            }
        }
    }
}
