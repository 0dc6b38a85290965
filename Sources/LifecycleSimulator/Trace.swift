/// The trace: the digest of all lines, and the last lines for a finding. Each line is printed.
struct Trace {
    /// The number of lines that a finding shows.
    static let tail = 40

    private var lines: [String] = Array(repeating: "", count: tail)
    private var next = 0
    private(set) var count = 0
    /// The 64-bit FNV-1a hash of all lines with their line feeds.
    private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325
    /// Receives each line, without the line feed.
    let print: (String) -> Void

    init(print: @escaping (String) -> Void) { self.print = print }

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
        print(line)
    }

    /// The last lines, oldest first.
    var last: [String] {
        let kept = min(count, Self.tail)
        return (0..<kept).map { lines[(next + Self.tail - kept + $0) % Self.tail] }
    }
}
