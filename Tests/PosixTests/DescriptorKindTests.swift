import Glibc
import Posix
import TestKit
import Testing

@Suite("Kinds of descriptors")
struct DescriptorKindTests {
    @Test("the kind of a descriptor is known without its file system")
    func kinds() throws {
        let folder = makeTemporaryFolder("kinds")
        defer { removeTree(folder) }
        #expect(mkfifo(folder + "/fifo", 0o600) == 0)
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        // O_PATH of open(2), which Swift's Glibc module lacks.
        let onlyPath: Int32 = 0o10_000_000
        let rows: [(String, Int32, DescriptorKind)] = [
            ("socket", socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0), .socket),
            ("pipe", ends[0], .pipe),
            ("inotify", inotify_init1(0), .event),
            ("folder", open(folder, O_RDONLY), .file),
            ("named pipe", open(folder + "/fifo", O_RDWR), .file),
            ("path", open("/", onlyPath), .file),
            ("device", open("/dev/null", O_RDONLY), .file),
            ("namespace", open("/proc/self/ns/mnt", O_RDONLY), .other("")),
        ]
        for (name, number, kind) in rows {
            try #require(number >= 0, "\(name): errno \(errno)")
            let descriptor = Descriptor(adopting: number)
            let found = DescriptorKind(of: descriptor.raw)
            if name == "namespace" {
                guard case .other(let text) = found else {
                    Issue.record("a namespace is \(found)")
                    continue
                }
                #expect(text.hasPrefix("mnt:["))
            } else {
                #expect(found == kind, "\(name)")
            }
            let isQuick = kind == .socket || kind == .pipe || kind == .event
            #expect(found.closesAtOnce == isQuick, "\(name)")
        }
        close(ends[1])
        #expect(DescriptorKind(of: 1 << 29) == .other(""))
    }

    @Test("a file whose name looks like that of another object is a file")
    func misleading() throws {
        let folder = makeTemporaryFolder("kinds")
        defer { removeTree(folder) }
        for name in ["socket:[1]", "pipe:[1]", "anon_inode:[eventfd]", "memfd:x (deleted)"] {
            let file = Descriptor(adopting: open("\(folder)/\(name)", O_RDWR | O_CREAT, 0o600))
            // A file of a tmpfs has seals as a memfd has.
            #expect([.file, .memory].contains(DescriptorKind(of: file.raw)))
        }
    }
}
