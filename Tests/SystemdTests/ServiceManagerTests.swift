import Glibc
import Posix
import Systemd
import TestKit
import Testing

/// These tests set environment variables, each in a process of its own, because other tests read the environment.
@Suite("Service manager")
struct ServiceManagerTests {
    /// The notify socket of a service manager.
    final class Manager {
        let folder: TemporaryFolder
        let descriptor: Int32

        init() throws {
            folder = try TemporaryFolder()
            descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            let path = folder.path + "/notify"
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
            let size = socklen_t(MemoryLayout<sockaddr_un>.size)
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) }
            }
            try #require(result == 0)
            setenv("NOTIFY_SOCKET", path, 1)
        }

        func received() -> String {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
        }

        deinit {
            unsetenv("NOTIFY_SOCKET")
            close(descriptor)
        }
    }

    @Test("messages to the service manager are spelled as in sd_notify(3)")
    func notices() throws {
        try inOwnProcess {
            let manager = try Manager()
            #expect(try ServiceManager.notify(.ready, .status("3 apps\nREADY=0")))
            #expect(manager.received() == "READY=1\nSTATUS=3 apps READY=0")
            try ServiceManager.notify(.stopping)
            #expect(manager.received() == "STOPPING=1")
            try ServiceManager.notify(.watchdog, .mainPID(17), .extendTimeout(.milliseconds(1500)))
            #expect(manager.received() == "WATCHDOG=1\nMAINPID=17\nEXTEND_TIMEOUT_USEC=1500000")
            try ServiceManager.notify(.reloading)
            #expect(manager.received().wholeMatch(of: /RELOADING=1\nMONOTONIC_USEC=\d+/) != nil)
            let pipe = try TestPipe()
            #expect(try ServiceManager.store([pipe.reading], name: "apps"))
            #expect(manager.received() == "FDSTORE=1\nFDPOLL=0\nFDNAME=apps")
            #expect(try ServiceManager.removeStored(name: "apps"))
            #expect(manager.received() == "FDSTOREREMOVE=1\nFDNAME=apps")
        }
    }

    @Test("without a service manager notifications have no effect and do not fail")
    func alone() throws {
        try inOwnProcess {
            unsetenv("NOTIFY_SOCKET")
            let isNotified = try ServiceManager.notify(.ready)
            let stored = try ServiceManager.store([.standardOutput], name: "x")
            #expect(!isNotified && !stored)
            #expect(try ServiceManager.takePassedDescriptors().isEmpty)
        }
    }

    @Test("passed descriptors are taken once, with their names")
    func handed() throws {
        try inOwnProcess {
            // Any open descriptor of this process serves the test.
            if fcntl(3, F_GETFD) < 0 { #expect(dup2(1, 3) == 3) }
            setenv("LISTEN_FDS", "1", 1)
            setenv("LISTEN_PID", "\(getpid())", 1)
            setenv("LISTEN_FDNAMES", "apps", 1)
            let passed = try ServiceManager.takePassedDescriptors()
            #expect(passed.map(\.number) == [3] && passed.map(\.name) == ["apps"])
            #expect(fcntl(3, F_GETFD) & FD_CLOEXEC != 0)
            #expect(try ServiceManager.takePassedDescriptors().isEmpty)
        }
    }
}
