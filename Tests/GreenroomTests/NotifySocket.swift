import Glibc
import TestKit
import Testing

/// A datagram socket that `NOTIFY_SOCKET` names, as the daemon creates one for each app.
final class NotifySocket {
    private let descriptor: Int32
    private let directory: String

    /// Binds the socket and sets `NOTIFY_SOCKET`.
    init() throws {
        directory = makeTemporaryFolder("greenroom-notify")
        let path = directory + "/notify"
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        let result = try bindSocket(descriptor, path)
        try #require(result == 0, "bind \(path): error \(errno)")
        setenv("NOTIFY_SOCKET", path, 1)
    }

    deinit {
        close(descriptor)
        removeTree(directory)
    }

    /// Returns the datagrams that have arrived. A Unix datagram has arrived when the sender's call returns.
    func received() -> [String] {
        var texts: [String] = []
        var buffer = [UInt8](repeating: 0, count: 8192)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            guard count >= 0 else { return texts }
            texts.append(String(decoding: buffer.prefix(count), as: UTF8.self))
        }
    }
}

private func bindSocket(_ descriptor: Int32, _ path: String) throws -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let name = Array(path.utf8)
    let capacity = MemoryLayout.size(ofValue: address.sun_path)
    try #require(name.count < capacity, "the path \(path) is too long for a socket")
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
    let size = MemoryLayout<sa_family_t>.size + name.count + 1
    return withUnsafePointer(to: address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(size)) }
    }
}
