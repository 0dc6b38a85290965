import Control
import Glibc
import Linux
import Posix
import Systemd

/// The program that listens and starts a server at the first connection, as systemd does for a socket unit.
let socketActivator = "/usr/bin/systemd-socket-activate"

/// The first of so many ports of 127.0.0.1 in a row that no socket has.
func consecutiveFreePorts(_ count: Int) throws -> Int {
    var length = 0
    for port in 20_000..<32_000 {
        length = isFree(UInt16(port)) ? length + 1 : 0
        if length == count { return port - count + 1 }
    }
    throw BenchFailure("\(count) free ports in a row were not found")
}

/// Whether sockets of 127.0.0.1 listen at all of these ports. Nothing connects to them.
func areListening(_ ports: Range<Int>) throws -> Bool {
    let text = String(decoding: try readFile(at: "/proc/net/tcp", limit: 64 << 20), as: UTF8.self)
    var found: Set<Int> = []
    for line in text.split(separator: "\n") {
        let words = line.split(separator: " ")
        // 0A: TCP_LISTEN.
        guard words.count > 3, words[3] == "0A", words[1].hasPrefix("0100007F:"),
            let port = Int(words[1].dropFirst(9), radix: 16), ports.contains(port)
        else { continue }
        found.insert(port)
    }
    return found.count == ports.count
}

extension Greenroom {
    /// All apps.
    func statuses() throws -> [AppStatus] {
        try [AppStatus](variant: try call("List"))
    }
}

extension Supervisor {
    /// The processes that it has started.
    func children() throws -> [Int32] {
        let bytes = try readFile(at: "/proc/\(pid)/task/\(pid)/children", limit: 1 << 20)
        return String(decoding: bytes, as: UTF8.self).split(separator: " ").compactMap { Int32($0) }
    }
}
