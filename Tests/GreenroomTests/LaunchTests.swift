import Glibc
import Greenroom
import TestKit
import Testing

// Each test runs in a process of its own, as it changes the environment.

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

    @Test("a process that Greenroom did not launch has no launch information")
    func none() throws {
        try inOwnProcess {
            set(["GREENROOM_LAUNCH_STATE": "inactive"])
            #expect(Greenroom.launch == nil)
        }
    }

    @Test("every variable of the environment is read")
    func all() throws {
        try inOwnProcess {
            set([
                "GREENROOM_APP": "photos", "GREENROOM_LAUNCH_STATE": "inactive", "GREENROOM_LAUNCH_REASON": "url",
                "GREENROOM_LAUNCH_URL": "photos:1", "GREENROOM_FIRST_LAUNCH": "1",
                "GREENROOM_LAST_RECEIPT": "/run/receipt", "GREENROOM_INBOX": "/run/inbox",
            ])
            let launch = try #require(Greenroom.launch)
            #expect(launch.app == "photos")
            #expect(launch.isForeground)
            #expect(launch.reason == "url")
            #expect(launch.url == "photos:1")
            #expect(launch.isFirst)
            #expect(launch.lastReceipt == "/run/receipt")
            #expect(launch.inbox == "/run/inbox")
        }
    }

    @Test("missing variables mean a launch by the user into the background that is not the first")
    func defaults() throws {
        try inOwnProcess {
            set(["GREENROOM_APP": "photos"])
            let launch = try #require(Greenroom.launch)
            #expect(!launch.isForeground)
            #expect(launch.reason == "user")
            #expect(!launch.isFirst)
            #expect(launch.url == nil && launch.lastReceipt == nil && launch.inbox == nil)
        }
    }
}
