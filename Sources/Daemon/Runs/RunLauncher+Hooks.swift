import LifecycleCore
import Linux
import Manifest

/// The processes of hooks (L57): the user, folders, limits and output of the app, in its group.
extension RunLauncher {
    func run(_ hook: Hook, number: Int, of id: RunID) {
        // The previous daemon started it, and died before it recorded that.
        guard let run = context.runs[id], run.hook?.number != number else { return }
        do {
            run.runHook(number, try commands(of: hook, run))
        } catch {
            run.send(.hookEnded(number: number, .notStarted("\(error)")))
        }
    }

    /// The commands are those of the manifest as it is now; all else is as it was at the launch.
    func commands(of hook: Hook, _ run: RunController) throws -> [SpawnRequest] {
        let manifest = run.manifest
        let user = try context.users.user(of: manifest)
        let environment = LaunchEnvironment(
            manifest: manifest, files: try environmentFiles(manifest),
            launch: Launch(state: .background, reason: .user), user: user?.record, notifySocket: "",
            inbox: run.inbox.path, marker: run.enclosure.environmentMarker, inherited: inheritedEnvironment
        ).entries(of: hook, mainPID: run.process?.pid, folders: context.folders)
        let current = context.manifests[run.app]?.value ?? manifest
        return (current.hooks[hook.kind] ?? []).map { command in
            var request = makeRequest(manifest, command.words(in: environment), user, environment, run.enclosure)
            setOutput(of: &request, manifest, run.id, nil, user?.owner)
            // From the start of the file it would overwrite what the app has written.
            request.outputFile?.appends = true
            request.errorFile?.appends = true
            return request
        }
    }
}
