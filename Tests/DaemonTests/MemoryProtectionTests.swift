import LifecycleCore
import Manifest
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon
@testable import Linux

/// `memory.low` of an app, whose group with a memory controller is an ordinary folder.
@Suite("Memory of apps in the foreground")
struct MemoryProtectionTests {
    @Test("the footprint of an app in the foreground is protected from reclaim, and that of no other app (L38)")
    func protected() throws {
        let root = try TestDaemon.makeFolder()
        let group = root + "/app.run1"
        try createDirectories(at: group)
        for file in ["cgroup.events", "memory.low"] { try replaceFile(at: "\(group)/\(file)", with: []) }
        try replaceFile(at: group + "/memory.stat", with: Array("anon 10485760\n".utf8))
        let mounts = "36 35 0:1 / \(group) rw - cgroup2 cgroup2 rw\n"
        let mount = try #require(CgroupMount(selfCgroup: Array("0::/\n".utf8), mountInfo: Array(mounts.utf8)))
        let groups = CgroupRoot(path: root, mount: mount, ownership: .own, controllers: ["memory"])
        let leaf = try CgroupLeaf(existing: CgroupLeaf.Name(app: "app", run: 1), root: groups)

        let events = EventList()
        let context = try DaemonContext.bare(in: root, try EventLoop(), events)
        let id = RunID(1)
        let run = RunController(
            id: id, manifest: SharedManifest(AppManifest(id: try #require(AppID("app")))),
            enclosure: Enclosure(app: "app", run: 1, kind: .cgroup(leaf), proc: ProcFS()),
            socket: try NotifySocket(id, in: context.notifySockets, owner: nil),
            owner: nil, context: context)
        context.runs.insert(run)
        func low() -> String { TestDaemon.text(of: group + "/memory.low") }

        context.memory.protection.insert(id)
        #expect(low() == "10485760")
        // It grows; the next measurement of memory finds it.
        func measured(_ bytes: UInt64) {
            let size = MemoryReading.Size(run: id, bytes: bytes, uncertainty: 0)
            context.memory.protection.measured([size], total: 1 << 30)
        }
        measured(20_971_520)
        #expect(low() == "20971520")
        // A little less is not worth a write.
        measured(20_000_000)
        #expect(low() == "20971520")
        context.memory.protection.remove(id)
        #expect(low() == "00971520")  // "0", in a file that is not the kernel's.
        context.memory.protection.insert(id)
        context.runs.remove(run)
    }
}
