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
        if invocation.has(.keepChildren) { arguments.append("--keep-children") }
        if let name = invocation.options[.name] { arguments += ["--name", name] }
        let chosen = RunProtocol(invocation)
        if let chosen { arguments += ["--protocol", chosen.rawValue] }
        for setting in (chosen?.settings ?? []) + invocation.settings { arguments += ["-p", setting] }
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

/// What `--protocol=` says of the standard streams of a command (L54).
enum RunProtocol: String, CaseIterable {
    case jsonrpc, mcp

    init?(_ invocation: Invocation) {
        guard let name = invocation.options[.protocol] else { return nil }
        self.init(rawValue: name)
    }

    /// What each command has, before the settings of its caller: one that is started again when it is needed is ended while it sleeps.
    var settings: [String] {
        switch self {
        case .jsonrpc: []
        case .mcp: ["TerminateSuspended=kill", "UnloadAfterSec=1h"]
        }
    }

    static func problem(_ invocation: Invocation) -> String? {
        guard let name = invocation.options[.protocol], Self(rawValue: name) == nil else { return nil }
        let names = allCases.map(\.rawValue).joined(separator: " or ")
        return "--protocol: unknown protocol '\(escaped(name))'; expected \(names)"
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
        let maximum = RunSettings.maximumAssignments - (RunProtocol(invocation)?.settings.count ?? 0)
        guard invocation.settings.count <= maximum else { return "--property: more than \(maximum) settings" }
        return RunProtocol.problem(invocation)
    }
}
