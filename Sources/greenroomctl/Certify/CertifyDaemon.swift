import Control
import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// A greenroomd of its own for `certify`, with temporary folders: neither the user's daemon nor their apps are touched.
final class CertifyDaemon {
    let folder: String
    private let program: String
    private let mode: String
    private let environment: [String]
    private var process: Linux.Process?

    var runtime: String { folder + "/run" }
    var apps: String { folder + "/config/apps" }
    private var log: String { folder + "/log" }

    /// - Parameter isForRoot: whether the daemon is one of the system.
    init(isForRoot: Bool, _ environment: Environment) throws(Failure) {
        program = try Self.findProgram(environment)
        mode = isForRoot ? "--system" : "--user"
        // The paths of sockets are short (unix(7)); TMPDIR may not be.
        let temporary = environment.folder("TMPDIR").flatMap { $0.utf8.count <= 40 ? $0 : nil }
        folder = try makeTemporaryFolder(in: temporary, "greenroom-certify")
        // Apps of other users need access.
        chmod(folder, 0o755)
        // Another daemon has the name on the message bus, and this one is not to take part in the sleep of the machine.
        let own = ["NOTIFY_SOCKET=\(folder)/ready", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=\(folder)/none"]
        self.environment = Self.inherited(environment).filter { !$0.hasPrefix("DBUS_SYSTEM_BUS_ADDRESS=") } + own
        try Self.carryOut { () throws(SystemError) in try createDirectories(at: folder + "/config/apps") }
    }

    /// Those that `isForRoot` decides by are the caller's; a user's apps get the others, too.
    private static func inherited(_ environment: Environment) -> [String] {
        let kept = environment.isRoot ? ["PATH", "HOME", "LANG"] : []
        var variables: [String] = []
        var next = environ
        while let entry = next.pointee {
            let text = String(cString: entry)
            next += 1
            let name = String(text.prefix { $0 != "=" })
            let isOfService = ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_USEC"].contains(
                name)
            if !isOfService, kept.isEmpty || kept.contains(name) { variables.append(text) }
        }
        return variables
    }

    /// Beside greenroomctl, where the compiler puts it; as it is installed; or in PATH.
    private static func findProgram(_ environment: Environment) throws(Failure) -> String {
        var paths: [String] = []
        if let own = realpath("/proc/self/exe", nil) {
            defer { free(own) }
            let control = String(cString: own)
            let folder = control.lastIndex(of: "/").map { String(control[..<$0]) } ?? ""
            paths = ["\(folder)/greenroomd", "\(folder)/../sbin/greenroomd"]
        }
        let variable = environment.variable("PATH") ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
        paths += variable.split(separator: ":").filter { $0.hasPrefix("/") }.map { "\($0)/greenroomd" }
        if let path = paths.first(where: { access($0, X_OK) == 0 }) { return path }
        throw Failure("certify: greenroomd is neither beside greenroomctl nor in PATH.")
    }

    /// Writes a file below the folder `apps`.
    func write(_ name: String, _ bytes: [UInt8]) throws(Failure) {
        let path = "\(apps)/\(name)"
        let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? apps
        try Self.carryOut { () throws(SystemError) in
            try createDirectories(at: parent)
            try replaceFile(at: path, with: bytes)
        }
    }

    /// Starts the daemon, and waits until it is ready.
    func start() throws(Failure) {
        try Self.carryOut { () throws(SystemError) in
            let ready = try DatagramSocket(at: folder + "/ready")
            let output = SharedDescriptor(try Descriptor.open(log, O_WRONLY | O_CREAT | O_APPEND, mode: 0o600))
            let command = tiedCommand([
                program, mode, "--config", folder + "/config", "--runtime", runtime, "--state", folder + "/state",
            ])
            var starting = try startProcess(
                SpawnRequest(
                    executable: command[0], arguments: Array(command.dropFirst()), environment: environment,
                    standardOutput: output, standardError: output))
            process = starting.process
            while try starting.outcome() == .pending {
                _ = isReadable(starting.outcomeDescriptor.raw, within: .seconds(1))
            }
            let limit = EventLoop.now() + .seconds(30)
            while EventLoop.now() < limit, !CertifyInterrupt.isRequested, try !starting.process.hasEnded() {
                guard isReadable(ready.descriptor.raw, within: .milliseconds(100)) else { continue }
                if let datagram = try ready.receive(),
                    String(decoding: datagram.bytes, as: UTF8.self).contains("READY=1")
                {
                    return
                }
            }
        }
        if CertifyInterrupt.isRequested || (try? process?.hasEnded()) == false, isAnswering { return }
        throw Failure("certify: greenroomd did not start.", hint: lastLines.isEmpty ? nil : lastLines)
    }

    /// The daemon is to end when this program is killed: no other one would end it. setpriv(1) is a part of util-linux.
    private func tiedCommand(_ command: [String]) -> [String] {
        let program = "/usr/bin/setpriv"
        return access(program, X_OK) == 0 ? [program, "--pdeathsig", "TERM"] + command : command
    }

    private var isAnswering: Bool { access(runtime + "/bus", F_OK) == 0 }

    /// The end of its log.
    private var lastLines: String {
        guard let bytes = try? Posix.readFile(at: log, limit: 1 << 20) else { return "" }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").suffix(5).map { escaped(String($0)) }
            .joined(separator: "\n")
    }

    /// Kills the daemon, as the kernel does when memory is short. Its apps run on.
    func kill() { end(with: SIGKILL) }

    private func end(with signal: Int32) {
        guard let process else { return }
        _ = try? process.signal(signal)
        // More than a shutdown takes (L46).
        let limit = EventLoop.now() + .seconds(90)
        while (try? process.reap()) ?? nil == nil {
            let isOver = isReadable(process.descriptor.raw, within: .seconds(1))
            if !isOver, EventLoop.now() > limit { _ = try? process.signal(SIGKILL) }
        }
        self.process = nil
    }

    /// Ends the daemon, which ends the app first, and removes the folder.
    /// - Parameter keepsFolder: the log is of use.
    func stop(keepsFolder: Bool) {
        end(with: SIGTERM)
        guard !keepsFolder else { return }
        var removal = FolderRemoval(in: folder)
        for entry in folderEntries(folder) where entry != "." && entry != ".." && unlink("\(folder)/\(entry)") != 0 {
            try? removal.add(entry)
        }
        while !removal.isEmpty, (try? removal.step(limit: 1000)) != nil {}
        rmdir(folder)
    }

    private static func carryOut(_ work: () throws(SystemError) -> Void) throws(Failure) {
        do throws(SystemError) { try work() } catch { throw Failure("certify: \(error)") }
    }
}

/// Ctrl-C, SIGTERM and SIGHUP while `certify` runs: it ends the daemon and the app, and removes the folder, before it exits.
enum CertifyInterrupt {
    /// The only thing that the signal handler changes (signal-safety(7)).
    nonisolated(unsafe) private(set) static var number: Int32 = 0
    static var isRequested: Bool { number != 0 }

    static func watch() {
        for number in [SIGINT, SIGTERM, SIGHUP] {
            var before = sigaction()
            sigaction(number, nil, &before)
            // What the caller ignores stays ignored: nohup(1), programs in the background.
            let handler = unsafeBitCast(before.__sigaction_handler.sa_handler, to: Int.self)
            guard handler == unsafeBitCast(SIG_DFL, to: Int.self) else { continue }
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { CertifyInterrupt.number = $0 }
            sigaction(number, &action, nil)
        }
    }
}
