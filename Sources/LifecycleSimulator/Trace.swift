/// What happened, line by line: the digest of all of it, the last of it for a finding, or the whole for a replay.
struct Trace {
    /// How many lines a finding shows.
    static let tail = 40

    private var lines: [String] = Array(repeating: "", count: tail)
    private var next = 0
    private(set) var count = 0
    /// FNV-1a, 64 bits, over all lines with their line feeds.
    private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325
    /// Gets each line, without the line feed.
    let print: ((String) -> Void)?

    init(print: ((String) -> Void)?) { self.print = print }

    mutating func add(_ line: String) {
        var hash = digest
        var text = line
        text.withUTF8 { bytes in
            for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        }
        digest = (hash ^ 10) &* 0x100_0000_01b3
        lines[next] = line
        next = (next + 1) % Self.tail
        count += 1
        print?(line)
    }

    /// The last lines, the oldest first.
    var last: [String] {
        let kept = min(count, Self.tail)
        return (0..<kept).map { lines[(next + Self.tail - kept + $0) % Self.tail] }
    }
}
