import Glibc

/// How a process of the app ended: its receipt.
public struct LastEnd: Sendable, Hashable {
    /// One sentence, the cause first: `Killed while suspended to free memory.`
    public let explanation: String
    /// The state in which the end began: `active`, `background`, `suspended`, …
    public let state: String
    /// `watchdog`, `lifecycle`, `user`, `resource`, `jetsam`, `signal` or `exit`.
    public let namespace: String
    /// The code in its namespace: `0`, `0x8badf00d`.
    public let code: String
    /// When the end was recorded, as in RFC 3339: `2025-11-21T07:12:03.250000Z`.
    public let time: String
    /// The exit status. `nil` if the main process did not exit by itself.
    public let exitStatus: Int?
    /// The number of the signal that ended the main process. `nil` if none did.
    public let signal: Int?
    /// Whether there is a core dump.
    public let isCoreDumped: Bool
    /// The whole receipt in JSON, with the keys of `greenroomctl --json receipt`.
    public let json: String

    /// A receipt has some hundred bytes, and a list of apps.
    private static let maximumBytes = 1 << 20

    /// Reads a receipt. `nil` if the file cannot be read or is damaged, which is no reason to fail a launch.
    init?(file: String) {
        guard let bytes = contents(file, limit: Self.maximumBytes) else { return nil }
        self.init(json: bytes)
    }

    init?(json bytes: [UInt8]) {
        var reader = JSONReader(bytes)
        guard let json = String(validating: bytes, as: UTF8.self), let fields = reader.fields() else { return nil }
        func text(_ key: String) -> String { if case .text(let text) = fields[key] { text } else { "" } }
        func number(_ key: String) -> Int? { if case .number(let text) = fields[key] { Int(text) } else { nil } }
        self.json = json
        explanation = text("explanation")
        state = text("state")
        namespace = text("namespace")
        code = text("code")
        time = text("time")
        exitStatus = number("exitStatus")
        signal = number("signal")
        isCoreDumped = fields["coreDumped"] == .bool(true)
    }
}

/// Returns the content of a file; `nil` if it cannot be read or has more bytes.
private func contents(_ file: String, limit: Int) -> [UInt8]? {
    let descriptor = open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 65_536)
    while bytes.count <= limit {
        let count = read(descriptor, &part, part.count)
        guard count >= 0 else { return nil }
        if count == 0 { return bytes }
        bytes += part.prefix(count)
    }
    return nil
}
