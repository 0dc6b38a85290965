import Glibc

/// A TCP connection whose send buffer is full. With SO_LINGER, closing `writer` blocks until `reader` is closed.
///
/// - Returns: `nil` if the loopback interface does not work.
package func lingeringConnection() -> (writer: Int32, reader: Int32)? {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let writer = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(listener) }
    let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(listener, $0, size) == 0 && listen(listener, 1) == 0 && getsockname(listener, $0, &size) == 0
                && connect(writer, $0, size) == 0
        }
    }
    guard isConnected else { return nil }
    var time = linger(l_onoff: 1, l_linger: 900)
    setsockopt(writer, SOL_SOCKET, SO_LINGER, &time, socklen_t(MemoryLayout<linger>.size))
    let bytes = [UInt8](repeating: 1, count: 65_536)
    while send(writer, bytes, bytes.count, Int32(MSG_DONTWAIT)) > 0 {}
    let reader = accept(listener, nil, nil)
    _ = fcntl(reader, F_SETFD, FD_CLOEXEC)
    return (writer, reader)
}
