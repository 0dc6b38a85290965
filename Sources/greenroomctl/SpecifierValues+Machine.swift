import Manifest
import Posix

extension SpecifierValues {
    /// The values for the apps of the daemon that other verbs would call, as that daemon finds them (`Folders`).
    init(isForRoot: Bool, _ environment: Environment, _ machine: MachineFacts) {
        self.init()
        func folder(_ variable: String, belowHome path: String) -> String? {
            environment.folder(variable) ?? environment.folder("HOME").map { $0 + path }
        }
        runtimeDirectory = isForRoot ? "/run" : folder("XDG_RUNTIME_DIR", belowHome: "/.cache")
        stateDirectory = isForRoot ? "/var/lib" : folder("XDG_STATE_HOME", belowHome: "/.local/state")
        cacheDirectory = isForRoot ? "/var/cache" : folder("XDG_CACHE_HOME", belowHome: "/.cache")
        configurationDirectory = isForRoot ? "/etc" : folder("XDG_CONFIG_HOME", belowHome: "/.config")
        temporaryDirectory = isForRoot ? "/tmp" : machine.temporaryDirectory
        largeTemporaryDirectory = isForRoot ? "/var/tmp" : machine.largeTemporaryDirectory
        userName = isForRoot ? "root" : machine.userName
        userID = isForRoot ? 0 : machine.userID
        groupName = isForRoot ? "root" : machine.groupName
        groupID = isForRoot ? 0 : machine.groupID
        homeDirectory = isForRoot ? "/root" : machine.home
        shell = isForRoot ? "/bin/bash" : machine.shell
        hostName = machine.hostName
        machineID = machine.machineID
        bootID = machine.bootID
        kernelRelease = machine.kernelRelease
        architecture = machine.architecture
    }
}
