import Manifest
import Posix

extension SpecifierValues {
    /// The values for the apps of this daemon.
    init(folders: Folders, machine: MachineFacts) {
        self.init()
        runtimeDirectory = folders.appRuntime
        stateDirectory = folders.appState
        cacheDirectory = folders.appCache
        configurationDirectory = folders.config.lastIndex(of: "/").map { String(folders.config[..<$0]) }
        temporaryDirectory = machine.temporaryDirectory
        largeTemporaryDirectory = machine.largeTemporaryDirectory
        userName = machine.userName
        userID = machine.userID
        groupName = machine.groupName
        groupID = machine.groupID
        homeDirectory = machine.home
        shell = machine.shell
        hostName = machine.hostName
        machineID = machine.machineID
        bootID = machine.bootID
        kernelRelease = machine.kernelRelease
        architecture = machine.architecture
    }
}
