import Control
import Glibc
import JSON
import Posix

/// `log` of apps whose output goes to files: without a journal.
extension Session {
    /// As journalctl and tail(1).
    private static let followedLines = 10

    func showOutputFiles(_ endpoint: Endpoint) throws(Failure) -> Int32 {
        guard invocation.options[.since] == nil else {
            throw Failure("--since needs the journal: the lines in the file of an app have no time.")
        }
        // Paths must not be escaped.
        let (found, problems) = try statuses(Client(endpoint, Client.Options(isInteractive: false, escapesText: false)))
        let several = invocation.namesSeveral
        var files: [FollowedFile] = []
        for app in found {
            guard let path = app.outputFile else {
                let name = escaped(app.id)
                report(
                    Failure(
                        "The output of '\(name)' goes to no file: '\(command("cat \(name)"))' shows StandardOutput=."))
                continue
            }
            files.append(FollowedFile(path: path, format: OutputFormat(app: app.id, self, isNamed: several)))
        }
        problems.forEach(report)
        let isFollowing = invocation.has(.follow)
        let lines = invocation.options[.lines].flatMap { Int($0) } ?? (isFollowing ? Self.followedLines : nil)
        let changes = isFollowing ? try FileChanges(files.map(\.path)) : nil
        for file in files {
            try file.printLast(lines)
            if !isFollowing { try file.printRest() }
        }
        if !isFollowing, !wantsJSON, screen.isTerminal, !files.isEmpty, files.allSatisfy(\.isEmpty) {
            try write("Nothing has been written.\n", to: STDERR_FILENO)
        }
        if let changes, !files.isEmpty { try follow(files, changes) }
        return problems.first?.status ?? (files.count < found.count ? 1 : 0)
    }

    private func follow(_ files: [FollowedFile], _ changes: borrowing FileChanges) throws(Failure) {
        while true {
            try changes.wait()
            for file in files {
                // A new file in its position has a watch of its own before it is read.
                changes.watch(file.path)
                try file.printNew()
            }
        }
    }
}

/// How the lines of an app are printed.
struct OutputFormat {
    private let app: String
    private let isJSON: Bool
    private let isTerminal: Bool
    private let isNamed: Bool

    /// - Parameter isNamed: whether each line begins with the name of the app.
    init(app: String, _ session: Session, isNamed: Bool) {
        self.app = app
        self.isNamed = isNamed
        isJSON = session.wantsJSON
        isTerminal = session.screen.isTerminal
    }

    /// The bytes to print for a line, which has no end.
    func bytes(_ line: ArraySlice<UInt8>) -> [UInt8] {
        if isJSON {
            // The keys of the journal, which `log` of a machine with a journal has.
            let text = String(decoding: line, as: UTF8.self)
            let object = JSONValue.object([("SYSLOG_IDENTIFIER", .string(app)), ("MESSAGE", .string(text))])
            return Array((object.serialized(pretty: false) + "\n").utf8)
        }
        let name = isNamed ? Array("\(app): ".utf8) : []
        return name + (isTerminal ? Array(Self.readable(line).utf8) : Array(line)) + [UInt8(ascii: "\n")]
    }

    /// The text for a terminal: control characters are escaped, as in all output of this program, but for tabs and the carriage
    /// return of a line end.
    static func readable(_ line: ArraySlice<UInt8>) -> String {
        let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        return String(decoding: line, as: UTF8.self).split(separator: "\t", omittingEmptySubsequences: false)
            .map { $0.escaped() }.joined(separator: "\t")
    }
}
