import Glibc
import TestKit
import Testing

@testable import Greenroom

// Tests that change the environment run in processes of their own.

@Suite("App library: launch information")
struct LaunchTests {
    private static let variables = [
        "GREENROOM_APP", "GREENROOM_LAUNCH_STATE", "GREENROOM_LAUNCH_REASON", "GREENROOM_LAUNCH_URL",
        "GREENROOM_FIRST_LAUNCH", "GREENROOM_LAST_RECEIPT", "GREENROOM_INBOX",
    ]

    private func set(_ values: [String: String]) {
        for name in Self.variables { unsetenv(name) }
        for (name, value) in values { setenv(name, value, 1) }
    }

    @Test("every variable of the environment is read, and the receipt that one of them names")
    func all() throws {
        try inOwnProcess {
            let folder = makeTemporaryFolder("greenroom-receipt")
            defer { removeTree(folder) }
            let receipt = """
                {"id":3,"app":"photos","time":"2025-11-21T07:12:03.250000Z","state":"suspended","namespace":"jetsam",
                "code":"1","explanation":"Killed while suspended to free memory.","candidates":[{"app":"a"}],"signal":9}

                """
            let file = fopen(folder + "/last.json", "w")
            fputs(receipt, file)
            fclose(file)
            set([
                "GREENROOM_APP": "photos", "GREENROOM_LAUNCH_STATE": "background", "GREENROOM_LAUNCH_REASON": "url",
                "GREENROOM_LAUNCH_URL": "photos:1", "GREENROOM_FIRST_LAUNCH": "1",
                "GREENROOM_LAST_RECEIPT": folder + "/last.json", "GREENROOM_INBOX": "/run/inbox",
            ])
            let launch = Launch()
            #expect(launch.app == "photos")
            #expect(!launch.isForeground)
            #expect(launch.reason == "url")
            #expect(launch.url == "photos:1")
            #expect(launch.isFirst)
            #expect(launch.inbox == "/run/inbox")
            let end = try #require(launch.lastEnd)
            #expect(end.explanation == "Killed while suspended to free memory.")
            #expect((end.state, end.namespace, end.code) == ("suspended", "jetsam", "1"))
            #expect(end.time == "2025-11-21T07:12:03.250000Z")
            #expect(end.signal == 9 && end.exitStatus == nil && !end.isCoreDumped)
            #expect(end.json == receipt)
        }
    }

    @Test("missing variables mean a launch by the user into the foreground that is not the first")
    func defaults() throws {
        try inOwnProcess {
            set([:])
            let launch = Launch()
            #expect(launch.app == "")
            #expect(launch.isForeground)
            #expect(launch.reason == "user")
            #expect(!launch.isFirst)
            #expect(launch.url == nil && launch.lastEnd == nil && launch.inbox == nil)
        }
    }

    @Test("a receipt that is missing or larger than 1 MiB is no last end")
    func noReceipt() throws {
        #expect(LastEnd(file: "/nonexistent") == nil)
        #expect(LastEnd(file: "/") == nil)
        #expect(LastEnd(file: "/dev/zero") == nil)
    }
}
