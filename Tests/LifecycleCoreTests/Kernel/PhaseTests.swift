import TestKit
import Testing

@testable import LifecycleCore

@Suite("Phases")
struct PhaseTests {
    static let all: [Phase] = [
        .notRunning, .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking,
        .terminating, .ending,
    ]

    /// The legal transitions: a row for each phase, a column for each next phase, both in the order of `all`.
    static let table = """
        x x . . . . . . . .
        . x x x . . . . x x
        . . x x . . . . x x
        . . x x x . . . x x
        . . x . x x . . x x
        . . . . . x x x . x
        . . . . . x x x . x
        . . x . x . . x x x
        . . . . . . . . x x
        x . . . . . . . . x
        """

    @Test("a phase may change to exactly the phases of the table", arguments: all)
    func transitions(phase: Phase) throws {
        let rows = Self.table.split(separator: "\n").map { $0.split(separator: " ") }
        try #require(rows.count == Self.all.count && rows.allSatisfy { $0.count == Self.all.count })
        let row = rows[try #require(Self.all.firstIndex(of: phase))]
        for (next, cell) in zip(Self.all, row) {
            #expect(phase.mayBecome(next) == (cell == "x"), "\(phase) → \(next)")
        }
    }

    /// A core whose only app has index 0 and is not running.
    private static func core() -> LifecycleCore {
        var core = LifecycleCore()
        _ = core.handle(.configuration(.registered(AppID("photos")!, AppPolicy(), launches: 0)), at: .origin)
        return core
    }

    private static func running(_ execution: Execution) -> ProcessLife {
        .running(Running(run: Run(id: RunID(1), created: .origin), execution: execution))
    }

    @Test("a legal transition is carried out")
    func legal() {
        var core = Self.core()
        core.change(0, to: Self.running(Self.launching), .launched, .origin)
        #expect(core.apps[0].phase == .launching)
        core.change(0, to: .foreground(Foreground()), .ready, .origin)
        #expect(core.apps[0].phase == .foreground)
    }

    private static let launching = Execution.launching(
        Launching(launch: Launch(state: .foreground, reason: .user), readiness: .executed))

    /// Whether `body` traps in a process of its own, with `message` in the output.
    private func traps(
        _ message: String, function: String = #function, file: String = #fileID, line: Int = #line,
        _ body: () -> Void
    ) throws -> Bool {
        do {
            try inOwnProcess(body, function: function, file: file, line: line)
            return false
        } catch let error as OwnProcessFailed {
            return error.description.contains(message)
        }
    }

    @Test("an illegal transition to a process life traps")
    func illegalLife() throws {
        let isTrapped = try traps("photos: suspended after notRunning") {
            var core = PhaseTests.core()
            core.change(0, to: PhaseTests.running(.suspended(Suspended())), .launched, .origin)
        }
        #expect(isTrapped)
    }

    @Test("an illegal transition to an execution traps")
    func illegalExecution() throws {
        let isTrapped = try traps("photos: suspended after launching") {
            var core = PhaseTests.core()
            core.change(0, to: PhaseTests.running(PhaseTests.launching), .launched, .origin)
            core.change(0, to: .suspended(Suspended()), .idle, .origin)
        }
        #expect(isTrapped)
    }

    @Test("an execution without a process traps")
    func executionWithoutProcess() throws {
        let isTrapped = try traps("photos: launching after notRunning") {
            var core = PhaseTests.core()
            core.change(0, to: PhaseTests.launching, .launched, .origin)
        }
        #expect(isTrapped)
    }
}
