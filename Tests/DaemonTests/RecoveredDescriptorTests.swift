import LifecycleCore
import Linux
import Posix
import Systemd
import Testing

@testable import Daemon

@Suite("The descriptors of the previous program")
struct RecoveredDescriptorTests {
    @Test("a connection of the private socket is recovered with its number and with the time at which it began")
    func clients() throws {
        let first = RecoveredDescriptors.Client(number: 9, connected: .microseconds(1_234_567))
        let second = RecoveredDescriptors.Client(number: 10, connected: .seconds(90_000))
        let names = [second.name, first.name, "client-1", "client-x-1", "client-1-2-3", "control"]
        let descriptors = RecoveredDescriptors(
            adopting: try names.map { ($0, UntakenDescriptor(try MemoryFile.empty("socket"))) })
        #expect(descriptors.clients == [first, second])
        #expect(descriptors.clients.first?.connected == .microseconds(1_234_567))
        _ = descriptors.take(first.name)
        #expect(descriptors.clients == [second])
    }

    @Test("the disabled apps that clients know are recovered")
    func disabledApps() throws {
        #expect(RecoveredDescriptors.file(ofDisabledApps: []) == nil)
        #expect(RecoveredDescriptors().takeDisabledApps() == [])
        let apps = try ["org.example.Photos", "mail"].map { try #require(AppID($0)) }
        let file = try #require(RecoveredDescriptors.file(ofDisabledApps: apps))
        let passed = UntakenDescriptor(try file.descriptor.duplicate())
        let descriptors = RecoveredDescriptors(adopting: [(RecoveredDescriptors.disabledApps, passed)])
        #expect(descriptors.takeDisabledApps() == apps)
        #expect(!descriptors.contains(RecoveredDescriptors.disabledApps))
    }

    @Test("a connection without a message is recovered with what its client has sent of the handshake")
    func handshakes() throws {
        let none = RecoveredDescriptors.Client(number: 1, connected: .microseconds(5), .handshake([]))
        let part = RecoveredDescriptors.Client(number: 2, connected: .microseconds(5), .handshake(Array("\0AUTH".utf8)))
        #expect(none.name == "client-1-5-" && part.name == "client-2-5-0041555448")
        let longest = [UInt8](repeating: 0xff, count: MessageFraming.longestHandshake)
        let long = RecoveredDescriptors.Client(number: 3, connected: .microseconds(5), .handshake(longest))
        let bad = ["client-4-5-0", "client-4-5-0g", "client-4-5-00-", "client-4-5--", long.name + "00"]
        let passed = try ([part.name, long.name, none.name] + bad).map { name in
            (name: name, descriptor: UntakenDescriptor(try MemoryFile.empty("socket")))
        }
        let descriptors = RecoveredDescriptors(adopting: passed)
        #expect(descriptors.clients == [none, part, long])
        let taken = descriptors.takeClients()
        #expect(taken.map(\.number) == [1, 2, 3])
        #expect(taken.map(\.resumption) == [none.resumption, part.resumption, long.resumption])
        #expect(descriptors.clients.isEmpty)
    }

    @Test("a process is younger than a connection if it started after it, however long the machine slept (L53)")
    func younger() {
        // The machine has run for 100s and slept for 900s when the connection begins, and sleeps again afterwards. By
        // CLOCK_MONOTONIC the connection begins at 100s.
        let connected = Duration.seconds(1000)
        func isYounger(_ seconds: UInt64) -> Bool {
            Requester.isYounger(start: seconds * 100, ticksPerSecond: 100, than: connected)
        }
        #expect(!isYounger(50) && !isYounger(500) && !isYounger(1000))
        #expect(isYounger(1001) && isYounger(5000))
        // A process that starts and connects within a tick.
        let within = connected + .microseconds(9_999)
        #expect(!Requester.isYounger(start: 100_000, ticksPerSecond: 100, than: within))
    }
}
