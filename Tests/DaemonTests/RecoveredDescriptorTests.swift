import LifecycleCore
import Linux
import Posix
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
}
