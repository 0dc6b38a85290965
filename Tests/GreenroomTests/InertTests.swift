import Glibc
import Greenroom
import TestKit
import Testing

// Each test runs in a process of its own, as it changes the environment and a process has one App.

/// Records the calls of a delegate, and stops the app at one of them.
private final class Recorder: AppDelegate {
    private(set) var calls: [String] = []
    private let last: String
    var page = ""
    var isRestoring = true

    init(until last: String) { self.last = last }

    private func record(_ call: String) {
        calls.append(call)
        if call == last { App.shared.stop() }
    }

    func willFinishLaunching(_ launch: Launch) { record("willFinishLaunching \(launch.reason)") }
    func shouldRestoreState(_ state: RestorationState) -> Bool {
        record("shouldRestoreState")
        return isRestoring
    }
    func restoreState(_ state: RestorationState) {
        page = state.text ?? ""
        record("restoreState")
    }
    func didFinishLaunching(_ launch: Launch) { record("didFinishLaunching") }
    func didBecomeActive(cause: ActivationCause) { record("didBecomeActive \(cause)") }
    func willTerminate(reason: String) { record("willTerminate \(reason)") }
}

/// Sets the environment of a program that Greenroom did not launch.
private func leaveGreenroom() {
    for name in [
        "GREENROOM_BUS_ADDRESS", "GREENROOM_APP", "GREENROOM_LAUNCH_REASON", "NOTIFY_SOCKET", "STATE_DIRECTORY",
    ] {
        unsetenv(name)
    }
}

@Suite("App library: without Greenroom")
struct InertTests {
    @Test("an app is launched and becomes active at once, and a service manager learns that it is ready and ends")
    func launch() throws {
        try inOwnProcess {
            leaveGreenroom()
            let socket = try NotifySocket()
            let delegate = Recorder(until: "didBecomeActive launch")
            App.shared.run(delegate)
            #expect(
                delegate.calls == ["willFinishLaunching user", "didFinishLaunching", "didBecomeActive launch"])
            #expect(!App.shared.isInGreenroom)
            #expect(socket.received() == ["READY=1", "STOPPING=1"])
        }
    }

    @Test("SIGTERM ends the app after its delegate was notified")
    func signal() throws {
        try inOwnProcess {
            leaveGreenroom()
            let delegate = Recorder(until: "")
            #expect(App.shared.dispatch(to: delegate, for: .seconds(0)))
            kill(getpid(), SIGTERM)
            App.shared.run(delegate)
            #expect(delegate.calls.last == "willTerminate SIGTERM")
            #expect(!App.shared.dispatch(to: delegate))
        }
    }

    @Test("the state is a file in STATE_DIRECTORY, which the delegate may refuse")
    func state() throws {
        try inOwnProcess {
            leaveGreenroom()
            let folder = makeTemporaryFolder("greenroom-state")
            defer { removeTree(folder) }
            setenv("STATE_DIRECTORY", folder, 1)
            #expect(try App.shared.restore() == nil)
            try App.shared.save("")
            #expect(try App.shared.restore()?.bytes == [])
            try App.shared.save(bytes: [0, 255])
            #expect(try App.shared.restore() == RestorationState(bytes: [0, 255]))
            #expect(try App.shared.restore()?.text == nil)
            try App.shared.save("größer")
            let delegate = Recorder(until: "didFinishLaunching")
            App.shared.run(delegate)
            #expect(delegate.page == "größer")
            #expect(delegate.calls.contains("restoreState"))
            try App.shared.dropState()
            #expect(try App.shared.restore() == nil)
        }
    }

    @Test("a delegate that does not want the state does not get it, and it stays saved")
    func veto() throws {
        try inOwnProcess {
            leaveGreenroom()
            let folder = makeTemporaryFolder("greenroom-state")
            defer { removeTree(folder) }
            setenv("STATE_DIRECTORY", folder, 1)
            try App.shared.save("kept")
            let delegate = Recorder(until: "didFinishLaunching")
            delegate.isRestoring = false
            App.shared.run(delegate)
            #expect(delegate.calls == ["willFinishLaunching user", "shouldRestoreState", "didFinishLaunching"])
            #expect(try App.shared.restore()?.text == "kept")
        }
    }

    @Test("a state of more than 1 MiB is refused with a sentence")
    func largeState() throws {
        try inOwnProcess {
            leaveGreenroom()
            let bytes = [UInt8](repeating: 1, count: 1 << 20)
            try App.shared.save(bytes: bytes)
            do {
                try App.shared.save(bytes: bytes + [1])
                Issue.record("not refused")
            } catch GreenroomError.refused(let name, let sentence) {
                #expect(name == "org.freedesktop.DBus.Error.LimitsExceeded")
                #expect(sentence.contains("1048577"))
            } catch {
                Issue.record(error)
            }
        }
    }

    @Test("background tasks and reports succeed without effect")
    func reports() throws {
        try inOwnProcess {
            leaveGreenroom()
            let app = App.shared
            #expect(try app.withBackgroundTask(named: "work") { $0.isExpiring } == false)
            let task = try app.beginBackgroundTask(named: String(repeating: "ä", count: 100))
            #expect(task.name == String(repeating: "ä", count: 64))
            #expect(!task.waitUntilExpiring(for: .zero))
            task.end()
            task.end()
            #expect(try app.remainingBackgroundTime == nil)
            app.setStatus("a status")
            try app.setSummary("a summary")
            app.setIdle()
            app.heartbeat()
            try app.saveSnapshot([1, 2, 3])
            app.start()
            #expect(try app.lastSummary == nil)
        }
    }

    @Test("a loop of the program's own polls the descriptor, and dispatching never waits unless it is asked to")
    func loop() throws {
        try inOwnProcess {
            leaveGreenroom()
            let delegate = Recorder(until: "")
            #expect(App.shared.dispatch(to: delegate))
            var polled = pollfd(fd: App.shared.descriptor, events: Int16(POLLIN), revents: 0)
            while !delegate.calls.contains("didBecomeActive launch") {
                poll(&polled, 1, -1)
                #expect(App.shared.dispatch(to: delegate))
            }
            #expect(poll(&polled, 1, 0) == 0)
            App.shared.stop()
            #expect(poll(&polled, 1, -1) == 1)
            #expect(!App.shared.dispatch(to: delegate))
        }
    }

    @Test("kinds that are not handled are not events")
    func kinds() throws {
        try inOwnProcess {
            leaveGreenroom()
            App.shared.handledEvents.remove(.didBecomeActive)
            let delegate = Recorder(until: "")
            #expect(App.shared.dispatch(to: delegate))
            kill(getpid(), SIGTERM)
            App.shared.run(delegate)
            #expect(!delegate.calls.contains("didBecomeActive launch"))
        }
    }
}
