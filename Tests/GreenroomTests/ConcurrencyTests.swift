import Glibc
import Greenroom
import TestKit
import Testing

// Each test runs in a process of its own, as it changes the environment and a process has one App.

/// A delegate of the main actor.
@MainActor
private final class MainDelegate: @MainActor AppDelegate {
    private(set) var calls: [String] = []

    func didFinishLaunching(_ launch: Launch) { calls.append("didFinishLaunching") }
    func didBecomeActive(cause: ActivationCause) {
        MainActor.assertIsolated()
        calls.append("didBecomeActive")
        App.shared.stop()
    }
}

/// An actor with work in the background.
private actor Indexer {
    private var count = 0

    func index() async throws -> Int {
        try await App.shared.withBackgroundTask(named: "index") {
            assertIsolated()
            count += 1
            await Task.yield()
            assertIsolated()
            return count
        }
    }
}

private struct Failure: Error {}

/// A value that may not leave its actor.
private final class Confined {
    var value = 0

    /// Runs on the actor of its caller, and so does the body.
    nonisolated(nonsending) func count() async throws {
        try await App.shared.withBackgroundTask(named: "count") {
            MainActor.assertIsolated()
            value += 1
        }
    }
}

@Suite("App library: Swift concurrency, without Greenroom")
struct ConcurrencyTests {
    private func leaveGreenroom() {
        for name in ["GREENROOM_BUS_ADDRESS", "NOTIFY_SOCKET", "STATE_DIRECTORY"] { unsetenv(name) }
    }

    @Test("handleEvents(with:) calls a delegate of the main actor on the main actor")
    @MainActor
    func mainActor() async throws {
        try await inOwnProcess {
            leaveGreenroom()
            let delegate = MainDelegate()
            await App.shared.handleEvents(with: delegate)
            #expect(delegate.calls == ["didFinishLaunching", "didBecomeActive"])
        }
    }

    @Test("the loop over the events ends when the app stops, and when a signal ends it")
    func events() async throws {
        try await inOwnProcess {
            leaveGreenroom()
            var names: [String] = []
            for await event in App.shared.events {
                switch event {
                case .didBecomeActive(let cause):
                    names.append("didBecomeActive \(cause)")
                    kill(getpid(), SIGINT)
                case .willTerminate(let reason, let deadline):
                    names.append("willTerminate \(reason)")
                    #expect(deadline == nil)
                default: names.append("another event")
                }
            }
            #expect(names == ["didBecomeActive launch", "willTerminate SIGINT"])
            for await _ in App.shared.events { Issue.record("an event after the end") }
        }
    }

    @Test("a loop whose task is cancelled ends, and the next one gets the events")
    func cancelledLoop() async throws {
        try await inOwnProcess {
            leaveGreenroom()
            App.shared.handledEvents.remove(.didBecomeActive)
            let loop = Task { for await _ in App.shared.events { Issue.record("an unexpected event") } }
            await Task.yield()
            loop.cancel()
            await loop.value
            kill(getpid(), SIGTERM)
            var reasons: [String] = []
            for await event in App.shared.events {
                if case .willTerminate(let reason, _) = event { reasons.append(reason) }
            }
            #expect(reasons == ["SIGTERM"])
        }
    }

    @Test("the body of a background task runs on the caller's actor, and its value and error are those of the call")
    func isolation() async throws {
        try await inOwnProcess {
            leaveGreenroom()
            let indexer = Indexer()
            #expect(try await indexer.index() == 1)
            #expect(try await indexer.index() == 2)
            try await count()
            await #expect(throws: Failure.self) {
                try await App.shared.withBackgroundTask(named: "failure") { throw Failure() }
            }
        }
    }

    /// What is captured and returned need not be Sendable.
    @MainActor
    private func count() async throws {
        let confined = Confined()
        let result = try await App.shared.withBackgroundTask(named: "count") {
            MainActor.assertIsolated()
            confined.value += 1
            return confined
        }
        #expect(result === confined && confined.value == 1)
        try await confined.count()
        #expect(confined.value == 2)
    }

    @Test("a cancelled task cancels its background task, which is no expiration")
    func cancelledTask() async throws {
        try await inOwnProcess {
            leaveGreenroom()
            let work = Task {
                try await App.shared.withBackgroundTask(named: "work") { try await Task.sleep(for: .seconds(100)) }
            }
            work.cancel()
            await #expect(throws: CancellationError.self) { try await work.value }
        }
    }
}
