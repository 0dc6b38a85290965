// greenroom-contract MODE: the app of the contract tests in Swift. MODE is how it handles events: blocking, loop, async or events.
// With chaos it is that of ContractChaosTests.

import Glibc
import Greenroom

/// The delegate, in a loop that blocks.
func runBlocking() { App.shared.run(ContractApp()) }

/// The delegate, in a loop of the program's own that polls the descriptor.
func runLoop() {
    let delegate = ContractApp()
    while App.shared.dispatch(to: delegate) {
        var polled = pollfd(fd: App.shared.descriptor, events: Int16(POLLIN), revents: 0)
        poll(&polled, 1, -1)
    }
}

/// Swift concurrency without `run(_:)`.
func readEvents() async throws {
    let delegate = ContractApp()
    if let state = try App.shared.restore(), delegate.shouldRestoreState(state) { delegate.restoreState(state) }
    for await event in App.shared.events {
        switch event {
        case .didBecomeActive(let cause): delegate.didBecomeActive(cause: cause)
        case .willResignActive(let cause): delegate.willResignActive(cause: cause)
        case .willEnterForeground: delegate.willEnterForeground()
        case .didEnterBackground: delegate.didEnterBackground()
        case .willTerminate(let reason, _): delegate.willTerminate(reason: reason)
        case .didReceiveMemoryWarning(let level): delegate.didReceiveMemoryWarning(level: level)
        case .tasksWillExpire(let names, let remaining): delegate.tasksWillExpire(names: names, remaining: remaining)
        case .open(let url): delegate.open(url: url)
        case .didReceivePush(let push): await receive(push, delegate)
        case .didWake(let wake): wake.complete(delegate.didWake(wake))
        case .didReceiveNotification(let kind, let payload):
            delegate.didReceiveNotification(kind: kind, payload: payload)
        case .willSuspend: delegate.willSuspend()
        case .didResume(let time, let changed): delegate.didResume(after: time, changed: changed)
        case .scene(let scene, let notice): delegate.sceneDidChange(scene, notice)
        case .takeSnapshot: if let snapshot = delegate.takeSnapshot() { try? App.shared.save(snapshot) }
        case .withdraw: delegate.withdraw()
        case .didDiscardScenes(let scenes): delegate.didDiscardScenes(scenes)
        case .takeSceneSnapshot(let scene):
            if let snapshot = delegate.takeSnapshot(scene: scene) { try? App.shared.save(snapshot, scene: scene) }
        }
    }
}

/// Handles a push with background tasks of Swift concurrency.
func receive(_ push: Wake, _ delegate: ContractApp) async {
    switch push.payload {
    case "task":
        do {
            try await App.shared.withBackgroundTask(named: "push") { delegate.say("task") }
            push.complete(.newData)
        } catch {
            delegate.say("no task: \(error)")
            push.complete(.failed)
        }
    case "long":
        do {
            try await App.shared.withBackgroundTask(named: "long") { try await Task.sleep(for: .seconds(30)) }
            delegate.say("not expired")
        } catch GreenroomError.taskExpired(let name) {
            delegate.say("expired \(name)")
        } catch {
            delegate.say("\(error)")
        }
        push.complete(.newData)
    default:
        do {
            push.complete(try delegate.didReceivePush(push))
        } catch {
            push.complete(.failed)
        }
    }
}

switch CommandLine.arguments.dropFirst().first {
case "blocking": runBlocking()
case "loop": runLoop()
case "async": await App.shared.handleEvents(with: ContractApp())
case "events": try await readEvents()
case "chaos": App.shared.run(ChaosApp())
default:
    print("usage: greenroom-contract blocking|loop|async|events|chaos")
    exit(2)
}
