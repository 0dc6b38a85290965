import Control
import Glibc
import Manifest

/// `run`: a small program of its own starts the command and waits for it (Sources/greenroom-run).
extension Session {
    private static let relay = "greenroom-run"

    func run() throws(Failure) -> Int32 {
        if invocation.has(.keep) { try createManifestOfRun() }
        var arguments = [Self.relay]
        if invocation.has(.quiet) { arguments.append("--quiet") }
        if let name = invocation.options[.name] { arguments += ["--name", name] }
        for setting in invocation.settings { arguments += ["-p", setting] }
        let sockets = sockets()
        arguments += sockets + ["--"] + operands
        // Where no daemon of this user is, there is nothing to be moved for.
        if !environment.isRoot, sockets.contains(where: { access($0, W_OK) == 0 }) {
            UserScope.enter(user: environment.userID)
        }
        // A stream that the caller has closed is closed for the command, too.
        for number in environment.closedDescriptors { _ = fcntl(number, F_SETFD, FD_CLOEXEC) }
        throw try Self.executing(Self.relay, arguments)
    }

    /// Where a daemon may take the command: the one that all verbs ask, then the other one, unless one was chosen.
    private func sockets() -> [String] {
        guard let endpoint = try? Endpoint(invocation, environment) else { return [Endpoint.systemRuntime + "/relay"] }
        var folders = [endpoint.runtime]
        let isChosen = [.runtime, .user, .system].contains(where: invocation.has)
        if !isChosen, let other = endpoint.other?.socket, other.hasSuffix("/bus") {
            folders.append(String(other.dropLast(4)))
        }
        return folders.map { $0 + "/relay" }
    }
}

/// The options of `run`.
enum RunOptions {
    /// The exit status if the command was not started, as of env(1) and timeout(1).
    static let failed: Int32 = 125

    /// Why the options cannot be used. The daemon checks the settings themselves.
    static func problem(_ invocation: Invocation) -> String? {
        if invocation.has(.json) { return "run: the output is that of the command; use run without --json" }
        if let wrong = invocation.settings.first(where: { !$0.contains("=") }) {
            return "--property: invalid setting '\(escaped(wrong))'; expected KEY=VALUE"
        }
        guard invocation.settings.count <= RunSettings.maximumAssignments else {
            return "--property: more than \(RunSettings.maximumAssignments) settings"
        }
        return nil
    }
}
