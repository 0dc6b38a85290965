import CLinux
import Glibc

package final class MemoryReaper {
    package init() {}
    package func release(_ process: Process) {
        guard let copy = try? process.duplicateDescriptor() else { return }
        _ = clinux_release_in_thread(copy.take())
    }
}

package final class MemoryInfoReader {
    package init() throws(SystemError) {}
    package func read() throws(SystemError) -> (total: UInt64, available: UInt64) {
        let text = String(decoding: try readFile(at: "/proc/meminfo", limit: 8192), as: UTF8.self)
        func value(_ key: String) -> UInt64 {
            for line in text.split(separator: "\n") where line.hasPrefix(key) {
                return line.split(separator: " ").compactMap { UInt64($0) }.first.map { $0 * 1024 } ?? 0
            }
            return 0
        }
        return (value("MemTotal:"), value("MemAvailable:"))
    }
}
package func perCPUFreeBytes() -> UInt64 { 0 }

package final class PressureTrigger {
    package enum Kind { case some, full }
    private let file: Descriptor
    package var descriptor: Int32 { file.raw }
    init(_ file: consuming Descriptor) { self.file = file }
    package static func open(kind: Kind, percent: Int) throws(SystemError) -> PressureTrigger {
        let file = try Descriptor.open("/proc/pressure/memory", O_RDWR | O_NONBLOCK)
        let text = Array("\(kind == .some ? "some" : "full") \(percent * 20000) 2000000".utf8) + [0]
        try writeAll(text, to: file.raw)
        return PressureTrigger(file)
    }
}

package struct ReceivedDescriptors {
    fileprivate var all: [OwnedDescriptor] = []
    package mutating func takeFirst() -> Descriptor? {
        guard let first = all.popLast() else { return nil }
        return first.take()
    }
}
final class OwnedDescriptor {
    private var raw: Int32
    init(_ raw: Int32) { self.raw = raw }
    func take() -> Descriptor {
        let number = raw
        raw = -1
        return Descriptor(adopting: number)
    }
    deinit { if raw >= 0 { close(raw) } }
}
package struct Datagram {
    package var bytes: [UInt8]
    package var isTooLarge: Bool
    package var pid: Int32
    package var descriptors: ReceivedDescriptors
}
package final class DatagramSocket {
    private let file: Descriptor
    package var descriptor: Int32 { file.raw }
    package init(path: String, mode: UInt32, owner: Owner? = nil) throws(SystemError) {
        let raw = socket(
            AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        file = Descriptor(adopting: raw)
        var address = sockaddr_un()
        address.sun_family = UInt16(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        unlink(path)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(raw, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw SystemError(call: "bind", errno: errno, path: path) }
        chmod(path, mode)
        if let owner { chown(path, owner.uid, owner.gid) }
        var on: Int32 = 1
        setsockopt(raw, SOL_SOCKET, SO_PASSCRED, &on, 4)
    }
    package func receive() throws(SystemError) -> Datagram? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var descriptors = [Int32](repeating: -1, count: 253)
        var count: Int32 = 0
        var pid: Int32 = 0
        var uid: UInt32 = 0
        var flags: Int32 = 0
        let got = clinux_receive(descriptor, &buffer, 4096, &descriptors, 253, &count, &pid, &uid, &flags)
        if got == -Int(EAGAIN) { return nil }
        try check(got, "recvmsg")
        let owned = ReceivedDescriptors(all: descriptors.prefix(Int(count)).map { OwnedDescriptor($0) })
        return Datagram(
            bytes: Array(buffer.prefix(got)), isTooLarge: flags & Int32(MSG_TRUNC) != 0, pid: pid, descriptors: owned)
    }
}

package final class LockFile {
    package enum Outcome {
        case taken(LockFile)
        case held(by: Int32?)
    }
    private let file: Descriptor
    init(_ file: consuming Descriptor) { self.file = file }
    package static func take(at path: String) throws(SystemError) -> Outcome {
        let file = try Descriptor.open(path, O_RDWR | O_CREAT, mode: 0o644)
        if clinux_flock(file.raw) != 0 {
            let pid = Int32(
                String(decoding: (try? readFile(at: path, limit: 32)) ?? [], as: UTF8.self).filter { $0 != "\n" })
            return .held(by: pid)
        }
        ftruncate(file.raw, 0)
        try writeAll(Array("\(getpid())\n".utf8), to: file.raw)
        return .taken(LockFile(file))
    }
}
package func sizeOfMemory(_ descriptor: borrowing Descriptor) -> Int64? {
    var about = stat()
    return fstat(descriptor.raw, &about) == 0 ? Int64(about.st_size) : nil
}
