import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Files that other users may write, or may not read.
@Suite(
    "Access to manifests", .enabled(if: geteuid() == 0, "only root's daemon has files that other users must not see"))
struct FileTrustTests {
    private static let secret = "[App]\nExecStart=secret1\nsecret2\n[secret3\nEnvironment=secret4\n"

    private func log(_ daemon: TestDaemon) -> String { TestDaemon.text(of: daemon.root + "/log") }

    @Test("an error in a manifest that not every user may read names key and expectation, and quotes nothing")
    func secrets() throws {
        let root = try TestDaemon.makeFolder()
        let apps = root + "/config/apps"
        try createDirectories(at: apps + "/dropin.app.d")
        try createDirectories(at: root + "/hidden", mode: 0o700)
        for (path, mode) in [
            (apps + "/private.app", 0o640), (root + "/hidden/linked", 0o644), (apps + "/dropin.app.d/1.conf", 0o600),
            (apps + "/public.app", 0o644),
        ] { try replaceFile(at: path, with: Array(Self.secret.utf8), mode: UInt32(mode)) }
        #expect(symlink(root + "/hidden/linked", apps + "/linked.app") == 0)
        try replaceFile(at: apps + "/dropin.app", with: Array("[App]\nExecStart=/bin/true\n".utf8))
        let daemon = try TestDaemon(root: root)
        for app in ["private", "linked", "dropin"] {
            let error = try #require(try daemon.status(app)["error"]?.stringValue)
            #expect(error.contains(":2:"), "\(error)")
            #expect(error.contains("ExecStart=: invalid value; expected the absolute path of a program"), "\(error)")
            #expect(!error.contains("secret"))
        }
        #expect(try daemon.status("public")["error"]?.stringValue?.contains("'secret1'") == true)
        let lines = log(daemon).split(separator: "\n").filter { $0.contains("secret") }
        #expect(!lines.isEmpty && lines.allSatisfy { $0.contains("public.app:") })
    }

    @Test("a manifest or folder that other users may write to causes a warning, at most ten of them")
    func unsafe() throws {
        let root = try TestDaemon.makeFolder()
        let apps = root + "/config/apps"
        try createDirectories(at: apps)
        let manifest = Array("[App]\nExecStart=/bin/true\n".utf8)
        try replaceFile(at: apps + "/safe.app", with: manifest)
        try replaceFile(at: apps + "/group-of-root.app", with: manifest, mode: 0o664)
        try replaceFile(at: apps + "/world.app", with: manifest, mode: 0o646)
        try replaceFile(at: apps + "/group.app", with: manifest, mode: 0o664, owner: Owner(uid: 0, gid: 65534))
        try replaceFile(at: apps + "/owner.app", with: manifest, owner: Owner(uid: 65534, gid: 0))
        let daemon = try TestDaemon(root: root)
        let end = ", and its contents decide what greenroomd runs as root"
        let log = log(daemon)
        #expect(log.contains("warning: \(apps)/world.app is not safe: every user may write to it (mode 646)\(end)"))
        #expect(log.contains("warning: \(apps)/group.app is not safe: group 65534 may write to it (mode 664)\(end)"))
        #expect(log.contains("warning: \(apps)/owner.app is not safe: it belongs to uid 65534\(end)"))
        #expect(log.ranges(of: "is not safe").count == 3)
        #expect(chmod(apps, 0o777) == 0)
        for number in 0..<20 { try replaceFile(at: "\(apps)/many\(number).app", with: manifest, mode: 0o666) }
        let warnings = JSONValue(try daemon.call("Reload")[0])["warnings"]?.arrayValue?.compactMap(\.stringValue) ?? []
        #expect(warnings.contains("warning: \(apps) is not safe: every user may write to it (mode 777)\(end)"))
        #expect(warnings.count == 10)
    }
}
