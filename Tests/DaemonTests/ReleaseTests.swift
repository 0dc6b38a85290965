import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

/// What an app has to let go of before it is suspended (L43).
@Suite("Resources that an app lets go of")
struct ReleaseTests {
    @Test(
        "an app that takes part and keeps a file of Releases= open is ended, one that takes none stays awake for it (L43)"
    )
    func held() throws {
        let root = try TestDaemon.makeFolder()
        let camera = root + "/video0"
        try replaceFile(at: camera, with: [UInt8](repeating: 0, count: 4096))
        let lifecycle = "[Lifecycle]\nSuspendDelaySec=0\nReleases=\(root)/vid*\n"
        let daemon = try TestDaemon(
            [
                "mail": TestDaemon.manifest("map \(camera)", lifecycle),
                "plain": "[App]\nStartupSec=0\nExecStart=/bin/sh -c 'exec 5<\(camera); exec sleep 1000'\n" + lifecycle,
                "waits": TestDaemon.manifest("map \(camera)", lifecycle + "ReleasesAction=wait\n"),
                "other": TestDaemon.manifest("", lifecycle + "BackgroundGPU=no\n"),
            ], configuration: "[Manager]\nForegroundLimit=4\n", root: root)
        for app in ["mail", "plain", "waits", "other"] { try daemon.launch(app) }
        try daemon.eventually("the shell has executed sleep") {
            TestDaemon.text(of: "/proc/\(try daemon.pid("plain"))/comm") == "sleep\n"
        }
        for app in ["mail", "plain", "waits", "other"] { _ = try daemon.ask("Background", app) }
        try daemon.waitUntil("mail", is: "notRunning")
        let receipt = try #require(try daemon.receipts("mail").last)
        #expect(receipt["code"]?.stringValue == "0xdead10cc")
        #expect(receipt["explanation"]?.stringValue?.contains("held \(camera) (Releases=)") == true)
        try daemon.waitUntil("other", is: "suspended")
        for app in ["plain", "waits"] {
            try daemon.eventually("it is awake for the file") {
                try daemon.status(app)["awake"]?.arrayValue?.first?["reason"]?.stringValue == "resource"
            }
            #expect(try daemon.state(app) == "background")
        }
        #expect(TestDaemon.text(of: root + "/log").contains("plain: not suspended yet: it holds \(camera) (Releases=)"))
    }
}
