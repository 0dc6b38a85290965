import Glibc
import Linux
import Posix
import TestKit

extension TestDaemon {
    /// Sends a notify message to the socket of the only running app.
    func sendMessage(_ text: String) throws {
        let sockets = entries(of: runtime + "/notify")
        guard sockets.count == 1 else { throw TestFailure("one app has to run; there are the sockets \(sockets)") }
        try sendDatagram(text, to: runtime + "/notify/" + sockets[0])
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

/// Sends a datagram to a socket in the file system.
func sendDatagram(_ text: String, to path: String) throws {
    let raw = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    guard raw >= 0 else { throw TestFailure("socket: \(errno)") }
    let descriptor = Descriptor(adopting: raw)
    var address = sockaddr_un()
    address.sun_family = UInt16(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let bytes = Array(text.utf8)
    let sent = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            sendto(descriptor.raw, bytes, bytes.count, 0, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
    guard sent == bytes.count else { throw TestFailure("sendto \(path): \(errno)") }
}
