import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

@Suite("Memory pressure that apps watch (L37)")
struct MemoryPressureFileTests {
    /// Sets the trigger, in the file of its own group.
    private static let script = """
        #!/bin/bash
        exec 3<>"$MEMORY_PRESSURE_WATCH" || exit 1
        printf %s "$MEMORY_PRESSURE_WRITE" | base64 -d >&3 || exit 2
        grep -q "/$GREENROOM_APP.run[0-9]*/memory.pressure" <<<"$MEMORY_PRESSURE_WATCH" || exit 3
        exit 42
        """

    @Test(
        "an app watches the pressure of its own group with the variables that it gets, as its user (L37)",
        arguments: geteuid() == 0 ? ["User=nobody", ""] : [""])
    func watch(user: String) throws {
        let folder = try TestDaemon.makeFolder()
        try replaceFile(at: folder + "/watch", with: Array(Self.script.utf8))
        #expect(chmod(folder, 0o755) == 0 && chmod(folder + "/watch", 0o755) == 0)
        let daemon = try TestDaemon([
            "watcher": "[App]\nExecStart=\(folder)/watch\n\(user)\n", "group": "[App]\nExecStart=/bin/sleep 1000\n",
        ])
        _ = try daemon.launch("group")
        // Without a group there is no file.
        guard let group = try daemon.groupPath("group"), exists(at: group + "/memory.pressure") else { return }
        _ = try daemon.launch("watcher")
        let end = try daemon.wait("watcher", "ended")
        #expect(end["exitStatus"]?.integerValue == 42, "\(end)")
    }
}
