import Glibc
import Posix

/// A socket in a table of /proc/PID/net (proc_pid_net(5)), which also shows network namespaces other than the daemon's.
struct ListedSocket: Equatable {
    var inode: UInt64
    var state: UInt8
    var localPort: UInt16
    /// As of `InternetSocket`.
    var readQueue: UInt32
    var writeQueue: UInt32

    /// - Parameter line: of tcp, tcp6, udp or udp6.
    init?(parsing line: ArraySlice<UInt8>) {
        var words = ByteScanner(line)
        var fields: [ArraySlice<UInt8>] = []
        while fields.count < 10, let word = words.word() { fields.append(word) }
        guard fields.count == 10, let colon = fields[1].lastIndex(of: UInt8(ascii: ":")),
            let port: UInt16 = parseNumber(fields[1][(colon + 1)...], radix: 16),
            let state: UInt8 = parseNumber(fields[3], radix: 16),
            let middle = fields[4].firstIndex(of: UInt8(ascii: ":")),
            let writeQueue: UInt32 = parseNumber(fields[4][..<middle], radix: 16),
            let readQueue: UInt32 = parseNumber(fields[4][(middle + 1)...], radix: 16),
            let inode: UInt64 = parseNumber(fields[9])
        else { return nil }
        self.inode = inode
        self.state = state
        localPort = port
        self.readQueue = readQueue
        self.writeQueue = writeQueue
    }

    private var hasEnd: Bool {
        state == InternetSocket.State.closeWait || state == InternetSocket.State.lastAck
            || state == InternetSocket.State.closing
    }
    /// Bytes, or connections, that wait for the app.
    var unread: UInt64 { UInt64(hasEnd && readQueue > 0 ? readQueue - 1 : readQueue) }
    var unsent: UInt64 { state == InternetSocket.State.listening ? 0 : UInt64(writeQueue) }
}

/// Searches the tables of one process's network namespace for sockets, in pieces.
final class SocketTextSearch {
    /// How much is read of all tables, in bytes: some 50,000 sockets.
    private static let longest = 8 << 20

    private let wanted: Set<UInt64>
    private var paths: [(path: String, kind: SocketKind)]
    /// Of the table that is read.
    private var kind = SocketKind.tcp
    private var file: SharedDescriptor?
    /// The start of a line whose end was not read yet.
    private var rest: [UInt8] = []
    private var count = 0
    private(set) var found: [(socket: ListedSocket, kind: SocketKind)] = []
    private(set) var isCut = false

    init(_ wanted: Set<UInt64>, process pid: Int32, kinds: Set<SocketKind>, proc: ProcFS) {
        self.wanted = wanted
        var names: [(String, SocketKind)] = []
        if kinds.contains(.tcp) || kinds.contains(.unknown) { names += [("tcp", .tcp), ("tcp6", .tcp)] }
        if kinds.contains(.udp) || kinds.contains(.unknown) { names += [("udp", .udp), ("udp6", .udp)] }
        paths = names.map { ("\(proc.root)/\(pid)/net/\($0.0)", $0.1) }
    }

    /// Reads about 100 lines.
    /// - Returns: whether there are more.
    func advance() throws(SystemError) -> Bool {
        guard let file else {
            guard !paths.isEmpty, !isCut else { return false }
            rest = []
            let next = paths.removeFirst()
            kind = next.kind
            do {
                self.file = SharedDescriptor(try openFile(next.path, O_RDONLY | O_NOCTTY, in: nil))
            } catch {
                if !error.meansGone, error.errno != EACCES { throw error }
            }
            return true
        }
        let number = file.raw
        let piece: [UInt8]
        do {
            piece = try readBuffer(16 * 1024, "read", nil) { read(number, $0, 16 * 1024) }
        } catch {
            // The process has ended.
            if !error.meansGone, error.errno != EINVAL { throw error }
            piece = []
        }
        count += piece.count
        isCut = isCut || count > Self.longest
        if piece.isEmpty || isCut { self.file = nil }
        take(piece)
        return true
    }

    private func take(_ piece: [UInt8]) {
        rest += piece
        guard let end = rest.lastIndex(of: 0x0a) else { return }
        var lines = ByteScanner(rest[...end])
        while let line = lines.line() {
            if let socket = ListedSocket(parsing: line), wanted.contains(socket.inode) { found.append((socket, kind)) }
        }
        rest = Array(rest[(end + 1)...])
        // No line of the kernel is that long.
        if rest.count > 4096 { rest = [] }
    }
}
