import Glibc
import Linux
import Posix
import TestKit
import Testing

/// A folder that removes itself.
final class Scratch {
    let path: String

    init() throws {
        path = makeTemporaryFolder("linux-tests")
    }

    deinit { removeTree(path) }

    func file(_ name: String, _ contents: String = "", mode: UInt32 = 0o644) throws -> String {
        try replaceFile(at: "\(path)/\(name)", with: Array(contents.utf8), mode: mode)
        return "\(path)/\(name)"
    }
}

/// Waits until a descriptor is readable or hung up; fails the test after ten seconds.
func wait(for descriptor: SharedDescriptor, events: Int16 = Int16(POLLIN)) throws {
    var entry = pollfd(fd: descriptor.raw, events: events, revents: 0)
    while true {
        let result = poll(&entry, 1, 10_000)
        if result < 0, errno == EINTR { continue }
        try #require(result == 1, "descriptor \(descriptor.raw) stayed quiet for ten seconds")
        return
    }
}

/// Checks a condition every millisecond, for at least ten seconds.
func eventually(_ what: String, _ condition: () throws -> Bool) throws {
    for _ in 0..<10_000 {
        if try condition() { return }
        usleep(1000)
    }
    Issue.record("not within the time: \(what)")
}

extension StartingProcess {
    mutating func finalOutcome() throws -> ExecOutcome {
        while true {
            let answer = try outcome()
            if answer != .pending { return answer }
            try wait(for: outcomeDescriptor)
        }
    }
}

extension Process {
    func waitForEnd() throws -> ExitReport {
        try wait(for: descriptor)
        return try #require(try reap())
    }
}

/// The output of a program and how it ended.
struct Finished {
    var output: String
    var status: EndStatus
    var lines: [String] { output.split(separator: "\n").map(String.init) }
}

@discardableResult
func run(_ executable: String, _ arguments: String...) throws -> Finished {
    try run(SpawnRequest(executable: executable, arguments: arguments))
}

/// Runs a request to its end with standard output captured.
func run(_ request: SpawnRequest) throws -> Finished {
    var request = request
    let pipe = try Pipe()
    try pipe.read.setNonBlocking(false)
    try pipe.write.setNonBlocking(false)
    request.standardOutput = SharedDescriptor(try pipe.write.duplicate())
    var starting = try startProcess(request)
    request.standardOutput = nil
    let reader = pipe.closingWrite()
    let outcome = try starting.finalOutcome()
    // Reap the process in any case.
    if outcome != .executed { _ = try starting.process.waitForEnd() }
    try #require(outcome == .executed)
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 4096)
    while true {
        let count = read(reader.raw, &piece, piece.count)
        if count <= 0 { break }
        bytes += piece[..<count]
    }
    let report = try starting.process.waitForEnd()
    return Finished(output: String(decoding: bytes, as: UTF8.self), status: report.status)
}

func folderNames(_ path: String) throws -> [String] {
    try #require(access(path, R_OK) == 0)
    return entries(of: path).sorted()
}

/// A duplicate of this process's standard input.
func standardInput() throws -> SharedDescriptor { SharedDescriptor(try Descriptor.duplicate(of: 0)) }

extension SharedDescriptor {
    /// A number that is not open. It is never released, so nothing closes it.
    static let notOpen = SharedDescriptor(Descriptor(adopting: 9999))
}
