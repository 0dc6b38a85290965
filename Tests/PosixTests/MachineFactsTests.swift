import Glibc
import Testing

@testable import Posix

@Suite("Facts about the machine")
struct MachineFactsTests {
    @Test("the facts are those of this machine and of the user of this process")
    func facts() throws {
        let facts = MachineFacts.read()
        var name = utsname()
        #expect(uname(&name) == 0)
        let release = withUnsafeBytes(of: name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        #expect(facts.kernelRelease == release)
        #expect(facts.userID == geteuid() && facts.groupID == getegid())
        #expect(!facts.hostName.isEmpty && !facts.userName.isEmpty && !facts.groupName.isEmpty)
        for identifier in [facts.machineID, facts.bootID].compactMap(\.self) {
            #expect(identifier.utf8.count == 32 && identifier.allSatisfy(\.isHexDigit))
        }
        #expect(facts.temporaryDirectory.hasPrefix("/") && facts.largeTemporaryDirectory.hasPrefix("/"))
    }

    @Test(
        "architectures have systemd's names",
        arguments: [
            ("x86_64", "x86-64"), ("i686", "x86"), ("aarch64", "arm64"), ("armv7l", "arm"), ("armv7b", "arm-be"),
            ("ppc64le", "ppc64-le"), ("riscv64", "riscv64"), ("s390x", "s390x"),
        ])
    func architectures(machine: String, name: String) {
        #expect(MachineFacts.architecture(machine) == name)
    }
}
