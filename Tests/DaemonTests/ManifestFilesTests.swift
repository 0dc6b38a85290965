import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

@Suite("Manifests that change on disk")
struct ManifestFilesTests {
    private func write(_ path: String, _ text: String) throws { try replaceFile(at: path, with: Array(text.utf8)) }

    @Test("status names the files, and says that one has changed since, until they are read again")
    func changes() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let manifest = daemon.config + "/apps/photos.app"
        func needsReload() throws -> Bool? { try daemon.status("photos")["needsReload"]?.boolValue }
        #expect(try daemon.status("photos")["files"]?.arrayValue == [.string(manifest)])
        #expect(try needsReload() == nil)

        try write(manifest, TestDaemon.manifest("") + "# changed\n")
        #expect(try needsReload() == true)
        #expect(try daemon.launch("photos")["needsReload"]?.boolValue == true)
        _ = try daemon.call("Reload")
        #expect(try needsReload() == nil)
        #expect(try daemon.launch("photos")["needsReload"] == nil)

        try createDirectories(at: manifest + ".d")
        try write(manifest + ".d/name.conf", "[App]\nName=Photos\n")
        #expect(try needsReload() == true)
        _ = try daemon.call("Reload")
        #expect(try needsReload() == nil)
        #expect(
            try daemon.status("photos")["files"]?.arrayValue == [
                .string(manifest), .string(manifest + ".d/name.conf"),
            ])

        try write(manifest + ".d/name.conf", "[App]\nName=Pictures\n")
        #expect(try needsReload() == true)
        unlink(manifest)
        #expect(try needsReload() == true)
        let list = try daemon.call("List").first.map { JSONValue($0) }
        #expect(list?.arrayValue?.first?["needsReload"]?.boolValue == true)
    }

    @Test("an app that an error disables has its files, too")
    func broken() throws {
        let daemon = try TestDaemon(["broken": "[App]\nExecStart=true\n"])
        let manifest = daemon.config + "/apps/broken.app"
        #expect(try daemon.status("broken")["files"]?.arrayValue == [.string(manifest)])
        try write(manifest, TestDaemon.manifest(""))
        #expect(try daemon.status("broken")["needsReload"]?.boolValue == true)
    }

    @Test("a file whose name is no ID is reported in the answer to a reload and in the log, and hidden files are not")
    func invalidNames() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let apps = daemon.config + "/apps"
        for name in ["bad name.app", ".hidden.app", "notes.txt"] { try write("\(apps)/\(name)", "[App]\n") }
        let result = JSONValue(try daemon.call("Reload")[0])
        let warnings = result["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
        #expect(warnings.count == 1, "\(warnings)")
        let start = "\(apps)/bad name.app: "
        #expect(warnings.first?.hasPrefix(start + "warning: ignored because of its name; expected ID.app") == true)
        #expect(TestDaemon.text(of: daemon.root + "/log").contains(start + "ignored because of its name"))
        #expect(result["apps"]?.integerValue == 1)
    }

    @Test("a manifest that was created since the manifests were read is named in the error about its app")
    func created() throws {
        let daemon = try TestDaemon()
        let manifest = daemon.config + "/apps/photos.app"
        try write(manifest, TestDaemon.manifest(""))
        do {
            _ = try daemon.call("Launch", [.string("photos"), .dictionary([])])
            Issue.record("it was launched")
        } catch let error as BusError {
            #expect(error.message.contains("\(manifest) was created after the manifests were read"), "\(error)")
        }
        _ = try daemon.call("Reload")
        #expect(try daemon.state("photos") == "notRunning")
    }
}
