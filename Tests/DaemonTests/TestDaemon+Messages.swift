import Glibc
import Linux
import Posix
import TestKit

extension TestDaemon {
    /// Sends a notify message to the socket of the only running app.
    func sendMessage(_ text: String) throws {
        let sockets = entries(of: runtime + "/notify")
        guard sockets.count == 1 else { throw TestFailure("one app has to run; there are the sockets \(sockets)") }
        let path = runtime + "/notify/" + sockets[0]
        var sender: Int32?
        // While a process executes its program it has no environment for a moment.
        try eventually("a process has \(path)") {
            sender = try firstProcess(of: path)
            return sender != nil
        }
        try sendDatagram(text, to: path, from: sender)
    }

    /// The notify socket of a running app. Before the app has executed its program, its environment is the daemon's.
    func notifySocket(_ app: String) throws -> String {
        let prefix = "NOTIFY_SOCKET=\(runtime)/notify/"
        var path: String?
        try eventually("\(app) has a notify socket") {
            let variables = TestDaemon.text(of: "/proc/\(try pid(app))/environ").split(separator: "\0")
            path = variables.first { $0.hasPrefix(prefix) }.map { String($0.dropFirst("NOTIFY_SOCKET=".count)) }
            return path != nil
        }
        return path ?? ""
    }

    /// The contents of a file in an app's inbox; `nil`: there is none.
    func inbox(_ app: String, _ kind: String) -> String? {
        let path = runtime + "/inbox/" + app + "/" + kind
        return exists(at: path) ? TestDaemon.text(of: path) : nil
    }
}

/// Sends a datagram to an app's notify socket, as if its main process had sent it: the daemon ignores other processes. Only
/// root may name another process as the sender (unix(7)).
/// - Throws: also while no process has this socket in its environment: the app has not executed its program yet.
func sendDatagram(_ text: String, to path: String) throws {
    guard let sender = try firstProcess(of: path) else { throw TestFailure("no process has the notify socket \(path)") }
    try sendDatagram(text, to: path, from: sender)
}

/// The process that started first of those with this notify socket; `nil`: there is none.
private func firstProcess(of path: String) throws -> Int32? {
    let variable = Array("\0NOTIFY_SOCKET=\(path)\0".utf8)
    let processes = try folderEntries(at: "/proc").compactMap { Int32($0) }.filter { pid in
        guard let bytes = try? readFile(at: "/proc/\(pid)/environ", limit: 1 << 20) else { return false }
        return ([0] + bytes).firstRange(of: variable) != nil
    }
    return try processes.compactMap { try ProcFS().stat(of: $0) }
        .min { ($0.startTime, $0.pid) < ($1.startTime, $1.pid) }?.pid
}

/// Sends a datagram to a socket in the file system.
/// - Parameter sender: the process that the receiver takes for the sender; `nil`: this process.
func sendDatagram(_ text: String, to path: String, from sender: Int32?) throws {
    let raw = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    guard raw >= 0 else { throw TestFailure("socket: \(errno)") }
    let descriptor = Descriptor(adopting: raw)
    var address = sockaddr_un()
    address.sun_family = UInt16(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    var bytes = Array(text.utf8)
    // cmsghdr: length, SOL_SOCKET, SCM_CREDENTIALS; then ucred.
    var control: [UInt64] = []
    if let sender {
        let kind: UInt64 = 1 | 2 << 32
        let process = UInt64(UInt32(bitPattern: sender)) | UInt64(getuid()) << 32
        control = [28, kind, process, UInt64(getgid())]
    }
    let sent = withUnsafeMutablePointer(to: &address) { address in
        bytes.withUnsafeMutableBytes { bytes in
            control.withUnsafeMutableBytes { control in
                var part = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                return withUnsafeMutablePointer(to: &part) { part in
                    var message = msghdr()
                    message.msg_name = UnsafeMutableRawPointer(address)
                    message.msg_namelen = socklen_t(MemoryLayout<sockaddr_un>.size)
                    message.msg_iov = part
                    message.msg_iovlen = 1
                    message.msg_control = control.isEmpty ? nil : control.baseAddress
                    message.msg_controllen = control.count
                    return sendmsg(descriptor.raw, &message, 0)
                }
            }
        }
    }
    guard sent == bytes.count else { throw TestFailure("sendmsg \(path): \(errno)") }
}
