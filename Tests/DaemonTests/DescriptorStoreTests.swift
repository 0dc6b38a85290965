import Glibc
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

@Suite("The service manager's file descriptor store")
struct DescriptorStoreTests {
    /// A store whose service manager listens on `NOTIFY_SOCKET`; the variable is set for the process.
    private func makeStore(_ path: String, _ log: TestLog) -> DescriptorStore {
        setenv("NOTIFY_SOCKET", path, 1)
        return DescriptorStore(
            environment: { ["NOTIFY_SOCKET": path, "FDSTORE": "64"][$0] }, journal: log.journal)
    }

    @Test("a failure to store or remove a descriptor is logged once, and again after a success")
    func failures() throws {
        // In a process of its own, because the environment belongs to the whole process.
        try inOwnProcess {
            let folder = makeTemporaryFolder("greenroom-store")
            defer { removeTree(folder) }
            let log = try TestLog()
            let store = makeStore(folder + "/manager", log)
            let file = SharedDescriptor(try MemoryFile.empty("file"))
            // No socket is bound at the path.
            store.store(file, "stored-1")
            #expect(log.lines.count == 1)
            #expect(log.text.contains("stored-1 cannot be stored for the next greenroomd: "))
            store.store(file, "stored-2")
            store.remove("stored-1")
            #expect(log.lines.count == 1)
            do {
                let socket = try DatagramSocket(at: folder + "/manager")
                store.store(file, "stored-3")
                #expect(log.lines.count == 1)
                #expect(try socket.receive() != nil)
                _ = try removeFile(at: folder + "/manager")
            }
            store.remove("stored-3")
            #expect(log.lines.count == 2)
            #expect(log.text.contains("stored-3 cannot be removed from the file descriptor store: "))
        }
    }

    @Test("without a service manager that stores descriptors nothing is stored, and nothing is logged")
    func unavailable() throws {
        let log = try TestLog()
        let store = DescriptorStore(environment: { $0 == "NOTIFY_SOCKET" ? "/dev/null" : nil }, journal: log.journal)
        #expect(!store.isAvailable)
        store.store(.standardError, "stored-1")
        store.remove("stored-1")
        #expect(log.text.isEmpty)
    }
}
