import LifecycleCore
import Testing

@testable import Manifest

@Suite("Notifications= and SettingsFile= (L33)")
struct NotificationSettingTests {
    @Test("Notifications= names kinds, several settings add to each other, and an empty one removes all")
    func kinds() throws {
        let manifest = try accepted("App", "Notifications=time locale", "Notifications=battery")
        #expect(manifest.policy.notifications.names == ["time", "battery", "locale"])
        #expect(try accepted("App", "Notifications=time", "Notifications=").policy.notifications == [])
        #expect(try accepted("App").policy.notifications == [])
    }

    @Test("every kind of L33 can be named, and an app's own kinds need no name")
    func allKinds() throws {
        let all = Notification.kinds.joined(separator: " ")
        #expect(try accepted("App", "Notifications=\(all)").policy.notifications.names == Notification.kinds)
        try expectRefused("App", "Notifications", "weather", "one or more of accessory, orientation, time")
        try expectRefused("App", "Notifications", "x-chat", "one or more of accessory, orientation, time")
    }

    @Test("SettingsFile= is an absolute path in which specifiers are replaced")
    func settingsFile() throws {
        let lines = ["Notifications=settings", "SettingsFile=/etc/%p/main.conf"]
        #expect(try accepted("App", lines[0], lines[1]).settingsFile == "/etc/a/main.conf")
        try expectRefused("App", "SettingsFile", "main.conf", "a normalized absolute path")
        try expectRefused("App", "SettingsFile", "/etc/../main.conf", "a normalized absolute path")
        try expectRefused("App", "SettingsFile", "/", "a normalized absolute path")
    }

    @Test(
        "verify names the kinds that never come",
        arguments: [
            (
                "Notifications=screenMode",
                "Notifications=screenMode has no effect: only greenroomctl send sends this kind"
            ),
            ("Notifications=settings", nil), ("Notifications=settings\nSettingsFile=/c", nil),
            ("SettingsFile=/c", "SettingsFile= has no effect: Notifications= does not contain settings"),
            (
                "Notifications=time\nRole=worker",
                "Notifications=time has no effect: the kind waits for the foreground, in which a worker never is"
            ),
            ("Notifications=protectedData", "Notifications=protectedData has no effect without ProtectedData=yes"),
            ("Notifications=battery time", nil),
        ])
    func warnings(lines: String, message: String?) throws {
        let reading = try read("[App]\nExecStart=/bin/app\n\(lines)\n")
        #expect(reading.diagnostics.map(\.message) == [message].compactMap { $0 })
        #expect(reading.manifest != nil)
    }
}
