import Glibc
import Posix

/// Helper threads in calls that no signal ends. The kernel waits for them in execve(2), and before this process ends.
enum BlockedHelpers {
    /// How long `wait` waits: 1s in steps of 10ms.
    private static let steps = 100

    /// Waits until there are none, for 1s at most: most of these calls take some microseconds.
    /// - Returns: those that remain.
    static func wait() -> [BlockedHelper] {
        for _ in 0..<steps {
            if BlockedHelper.all.isEmpty { return [] }
            poll(nil, 0, 10)
        }
        return BlockedHelper.all
    }

    /// What cannot be done, of which apps, and what the user can do about it; `nil`: nothing is blocked.
    static func problem(of blocked: [BlockedHelper]) -> String? {
        if blocked.isEmpty { return nil }
        let calls: [BlockedHelper.Call] = [.closingFile, .closing, .examining]
        let sentences = calls.compactMap { call in
            let owners = blocked.filter { $0.call == call }.map(\.owner)
            return owners.isEmpty ? nil : sentence(call, apps: Set(owners.filter { !$0.isEmpty }).sorted())
        }
        return sentences.joined(separator: "; ")
    }

    private static func sentence(_ call: BlockedHelper.Call, apps: [String]) -> String {
        let senders = apps.isEmpty ? "an app or a client" : apps.joined(separator: ", ")
        return switch call {
        case .closingFile:
            "files that \(senders) sent cannot be closed: their file system does not answer; end the program that serves it"
        case .closing:
            "descriptors of \(senders) cannot be closed: another process holds their lock; end that process"
        case .examining:
            "descriptors or files of \(senders) cannot be examined: another process holds their lock, or their file system does not "
                + "answer; end that process"
        }
    }
}
