import LifecycleCore
import Linux
import Manifest
import TestKit
import Testing

@testable import Daemon

@Suite("The environment of an app")
struct LaunchEnvironmentTests {
    @Test("the last entry of a variable counts, also if its value begins with a combining mark")
    func lastWins() {
        let entries = ["A=1", "B=2", "A=\u{301}3", "AB=4", "A=5", "C", "C=6"]
        #expect(LaunchEnvironment.lastWins(entries) == ["A=5", "B=2", "AB=4", "C=6"])
    }

    @Test("a user's apps inherit the environment of the daemon, without what is set for the daemon alone")
    func passedOn() {
        let own = ["WATCHDOG_USEC=30000000", "SWIFT_BACKTRACE=enable=no", "NOTIFY_SOCKET=/run/x", "GREENROOM_APP=a"]
        let other = ["LANG=C", "SWIFT_BACKTRACE_LIKE=1", "PATH=/usr/bin"]
        #expect(LaunchEnvironment.passedOn(own + other) == other)
    }

    /// A name service that counts lookups.
    private final class Service {
        var asked = 0
        var uid: UInt32? = 1000
        var time = Duration.zero
        let folder = makeTemporaryFolder("greenroom-users")
        lazy var cache = UserCache(databases: [folder + "/passwd"], now: { [unowned self] in self.time }) {
            [unowned self] _ in
            self.asked += 1
            guard let uid = self.uid, let record = try lookUpUser(String(uid)) else {
                throw Problem("there is no such user")
            }
            return AppUser(record: record, credentials: Credentials(uid: uid, gid: uid, groups: []))
        }

        deinit { removeTree(folder) }
    }

    private func manifest(_ more: String) throws -> AppManifest {
        let text = "[App]\nExecStart=/bin/true\n\(more)\n"
        let source = SourceFile(path: "a.app", bytes: Array(text.utf8))
        return try #require(
            parseManifest(
                id: AppID("a")!, sources: [source], memory: nil, specifiers: SpecifierValues()
            ).0)
    }

    @Test("a user is looked up once, and again after a reload, ten minutes or a change of the databases")
    func users() throws {
        let service = Service()
        let first = try manifest("User=u")
        func ask(_ manifest: AppManifest) throws -> UInt32? { try service.cache.user(of: manifest)?.credentials.uid }
        for _ in 0..<3 { #expect(try ask(first) == 1000) }
        #expect(service.asked == 1)
        #expect(try ask(manifest("User=u\nGroup=g")) == 1000)
        #expect(service.asked == 2)
        service.uid = 1001
        service.time = .seconds(599)
        #expect(try ask(first) == 1000)
        service.time = .seconds(600)
        #expect(try ask(first) == 1001)
        service.uid = 1002
        service.cache.clear()
        #expect(try ask(first) == 1002)
        service.uid = 1003
        try replaceFile(at: service.folder + "/passwd", with: [])
        #expect(try ask(first) == 1003)
        try replaceFile(at: service.folder + "/passwd", with: [1])
        service.uid = 1004
        #expect(try ask(first) == 1004)
        #expect(service.asked == 6)
    }

    @Test("a user that was not found is looked up again, and the daemon's own user is not looked up")
    func noUser() throws {
        let service = Service()
        service.uid = nil
        let app = try manifest("User=u")
        for _ in 0..<2 { #expect(throws: Problem.self) { try service.cache.user(of: app) } }
        service.uid = 1000
        #expect(try service.cache.user(of: app) != nil)
        #expect(service.asked == 3)
        #expect(try service.cache.user(of: manifest("")) == nil)
        #expect(service.asked == 3)
    }
}
