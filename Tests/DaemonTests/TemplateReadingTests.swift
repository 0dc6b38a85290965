import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import TestKit
import Testing

@testable import Daemon

/// How templates are read, and instances are created from what was read.
@Suite("Reading of templates")
struct TemplateReadingTests {
    /// A folder with manifests, and the library that reads it.
    private final class Stage {
        let root = makeTemporaryFolder("greenroom-templates")
        let library: ManifestLibrary
        var running: Set<AppID> = []

        init(limit: Int = ManifestLibrary.maximumApps) throws {
            var folders = try #require(Folders(mode: .system) { _ in nil })
            folders.config = root
            folders.vendor = root + "/vendor"
            folders.moveRuntime(to: root + "/run")
            folders.moveState(to: root + "/state")
            try createDirectories(at: root + "/apps")
            library = ManifestLibrary(folders: folders, limits: ManifestReading.Limits(apps: limit))
            library.isRunning = { [unowned self] in running.contains($0) }
        }

        deinit { removeTree(root) }

        func write(_ name: String, _ settings: String = "Name=%i") throws {
            let text = "[App]\nExecStart=/bin/true\n\(settings)\n"
            try replaceFile(at: "\(root)/apps/\(name).app", with: Array(text.utf8))
        }

        func link(_ name: String, to target: String) { #expect(symlink(target, "\(root)/apps/\(name).app") == 0) }

        @discardableResult
        func read(_ reading: ManifestReading? = nil) -> ManifestLibrary.Changes {
            let reading = reading ?? library.beginReading()
            while reading.advance() {}
            return library.adopt(reading)
        }

        func name(_ app: String) -> String? { AppID(app).flatMap { library.manifests[$0]?.name } }
        var ids: [String] { library.ids.map(\.name) }
    }

    private func id(_ name: String) throws -> AppID { try #require(AppID(name)) }

    @Test("a template is read from disk once for all of its instances, also for those that are links to it")
    func once() throws {
        let stage = try Stage()
        try stage.write("worker@", "Name=old %i")
        for number in 0..<50 { stage.link("worker@\(number)", to: "worker@.app") }
        stage.read()
        _ = try stage.library.instantiate(id("worker@x"))
        let reading = stage.library.beginReading()
        while reading.advance(), reading.manifests.count < 10 {}
        try stage.write("worker@", "Name=new %i")
        stage.read(reading)
        #expect(stage.library.manifests.count == 51)
        #expect(stage.library.manifests.values.allSatisfy { $0.name == "old \($0.id.instance ?? "")" })
        // Of the change each of them knows, and one that is created now has what was read.
        _ = try stage.library.instantiate(id("worker@y"))
        #expect(stage.name("worker@y") == "old y")
        for app in ["worker@7", "worker@x", "worker@y"] { #expect(stage.library.needsReload(try id(app))) }
        stage.read()
        #expect(stage.library.manifests.values.allSatisfy { $0.name == "new \($0.id.instance ?? "")" })
        for app in ["worker@7", "worker@x", "worker@y"] { #expect(!stage.library.needsReload(try id(app))) }
    }

    @Test("a step reads the manifest of one instance, and what was read before stays in effect until all are read")
    func steps() throws {
        let stage = try Stage()
        try stage.write("worker@")
        stage.read()
        for number in 0..<300 { _ = try stage.library.instantiate(id("worker@\(number)")) }
        #expect(stage.ids == (0..<300).map { "worker@\($0)" }.sorted())
        let reading = stage.library.beginReading()
        var (before, steps) = (0, 0)
        while reading.advance() {
            #expect(reading.manifests.count <= before + 1)
            before = reading.manifests.count
            steps += 1
        }
        #expect(before == 300 && steps >= 300)
        #expect(stage.library.adopt(reading).gone.isEmpty)
        #expect(stage.ids == (0..<300).map { "worker@\($0)" }.sorted())
        #expect(stage.library.manifests.values.allSatisfy { $0.policy.isTransient })
    }

    @Test("instances that are created and removed while the files are read are taken over")
    func meanwhile() throws {
        let stage = try Stage()
        try stage.write("worker@", "Name=old")
        stage.read()
        for number in 0..<20 { _ = try stage.library.instantiate(id("worker@\(number)")) }
        try stage.write("worker@", "Name=new")
        stage.link("worker@3", to: "worker@.app")
        let reading = stage.library.beginReading()
        while reading.advance(), reading.manifests.count < 10 {}
        for name in ["a", "0", "19", "3"] { stage.library.remove(try id("worker@" + name)) }
        for name in ["a", "b", "19"] { _ = try stage.library.instantiate(id("worker@" + name)) }
        stage.library.remove(try id("worker@b"))
        #expect(stage.name("worker@a") == "old")
        let changes = stage.read(reading)
        let expected = ((1..<20).map { "worker@\($0)" } + ["worker@a"]).sorted()
        #expect(stage.ids == expected)
        #expect(stage.library.manifests.keys.map(\.name).sorted() == expected)
        #expect(stage.library.manifests.values.allSatisfy { $0.name == "new" })
        #expect(stage.library.transient.keys.map(\.name).sorted() == expected.filter { $0 != "worker@3" })
        #expect(changes.gone.allSatisfy { stage.library.manifests[$0] == nil })
    }

    @Test("an instance that is created while its template is removed is gone with the others")
    func removedMeanwhile() throws {
        let stage = try Stage()
        try stage.write("worker@")
        stage.read()
        _ = try stage.library.instantiate(id("worker@1"))
        unlink("\(stage.root)/apps/worker@.app")
        let reading = stage.library.beginReading()
        while reading.advance(), stage.library.manifests.count == 1 {
            if reading.files.templates.isEmpty { _ = try stage.library.instantiate(id("worker@2")) }
        }
        #expect(stage.read(reading).gone.map(\.name).sorted() == ["worker@1", "worker@2"])
        #expect(stage.ids.isEmpty)
        // Until the core knows them no more.
        #expect(stage.library.transient.count == 2)
        #expect(throws: InstanceProblem.noTemplate) { try stage.library.instantiate(id("worker@3")) }
    }

    @Test("there are no more apps than the limit: instances are refused, and do not displace apps with files")
    func limit() throws {
        let stage = try Stage(limit: 5)
        try stage.write("worker@")
        try stage.write("photos", "Name=x")
        try stage.write("worker@disabled", "Type=notfy")
        stage.read()
        for number in 0..<3 { _ = try stage.library.instantiate(id("worker@\(number)")) }
        #expect(throws: InstanceProblem.tooMany(5)) { try stage.library.instantiate(id("worker@3")) }
        stage.library.remove(try id("worker@1"))
        _ = try stage.library.instantiate(id("worker@3"))
        // One more file leaves space for one instance less.
        try stage.write("z", "Name=x")
        let changes = stage.read()
        #expect(stage.ids == ["photos", "worker@0", "worker@2", "z"])
        #expect(changes.gone.map(\.name) == ["worker@3"])
        #expect(changes.errors.contains { $0.logged.contains("6 apps; the limit is 5: worker@3 and the apps after") })
    }

    @Test("an instance that runs and loses its file has the manifest of the template from then on")
    func losesFile() throws {
        let stage = try Stage()
        try stage.write("worker@", "Name=template")
        for name in ["1", "2"] { try stage.write("worker@" + name, "Name=own") }
        stage.read()
        stage.running = [try id("worker@1")]
        for name in ["1", "2"] { unlink("\(stage.root)/apps/worker@\(name).app") }
        #expect(stage.read().gone.map(\.name) == ["worker@2"])
        #expect(stage.name("worker@1") == "template")
        #expect(stage.library.transient.keys.map(\.name) == ["worker@1"])
    }

    @Test("a template that only root may read is not quoted in the errors of its instances")
    func unreadable() throws {
        let stage = try Stage()
        try stage.write("worker@", "Type=secret")
        stage.read()
        #expect(throws: InstanceProblem.self) { try stage.library.instantiate(id("worker@1")) }
        chmod("\(stage.root)/apps/worker@.app", 0o600)
        chmod(stage.root, 0o755)
        if geteuid() == 0 {
            do {
                _ = try stage.library.instantiate(id("worker@1"))
                Issue.record("it was created")
            } catch {
                #expect(!"\(error)".contains("secret"), "\(error)")
            }
        }
    }

    @Test("the record of an instance names it, whatever it contains")
    func records() throws {
        let held = TransientInstance(holdsSockets: true)
        let records: [String: [UInt8]] = [
            TransientInstance.recordName(try id("worker@1")): held.savedBytes,
            TransientInstance.recordName(try id("a@b:c\\x2d")): [255, 255], "instance/photos": [], "instance/x@": [],
            "run/1": [],
        ]
        let expected = [try id("worker@1"): held, try id("a@b:c\\x2d"): TransientInstance()]
        #expect(TransientInstance.all(in: records) == expected)
    }
}
