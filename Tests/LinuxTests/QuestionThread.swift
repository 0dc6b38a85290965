import Posix
import TestKit
import Testing

@testable import Linux

/// A helper thread that answers the questions of looks.
final class QuestionThread {
    let thread: HelperThread
    private let name: String
    private var questions: UInt64 = 0

    /// - Parameter name: of the thread, at most 15 bytes.
    init(_ name: String = "questions") throws {
        self.name = name
        thread = try HelperThread(name: name, .reports)
    }

    func begin(_ question: SocketQuestion) throws {
        questions += 1
        let isTaken = try question.submit(to: thread, token: questions)
        try #require(isTaken)
    }

    /// Waits for the end of the last question.
    /// - Returns: the size of the answers.
    func answer() throws -> UInt64 {
        let completions = try #require(thread.completions)
        try wait(for: completions)
        let all = try thread.collect()
        let done = try #require(all.first)
        #expect(all.count == 1 && done.token == questions && done.errno == 0)
        return done.bytes
    }

    /// Whether the thread waits in a call that no signal ends (proc_pid_stat(5)).
    var isBlocked: Bool {
        entries(of: "/proc/self/task").contains { thread in
            let stat = (try? readFileIfPresent(at: "/proc/self/task/\(thread)/stat", limit: 4096)) ?? nil
            return stat?.text.contains("(\(name)) D ") ?? false
        }
    }
}

extension WorkLook {
    /// Does the rest of the look, with a helper thread for its questions.
    func finish(_ questions: QuestionThread, at now: () -> Duration) throws {
        while true {
            while try advance(at: now()) {}
            guard let question else { return }
            try questions.begin(question)
            answered(try questions.answer())
        }
    }
}
