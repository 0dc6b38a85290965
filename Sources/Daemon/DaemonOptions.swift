package import Systemd

/// What the command line says.
package struct DaemonOptions: Hashable, Sendable {
    package var mode: Folders.Mode
    package var folders: Folders
    package var logLevel: LogLevel = .info
    /// The group below which apps' groups are made; `nil`: what is found (`ContainmentMode.detect`).
    package var cgroup: String?
    /// The bus that the name is taken on: the machine's or the user's; `nil`: there is none.
    package var busAddress: String?
    /// The machine's bus, where logind is.
    package var systemBusAddress: String

    package init(mode: Folders.Mode, folders: Folders, environment: (String) -> String?) {
        self.mode = mode
        self.folders = folders
        systemBusAddress = BusAddress.system(environment: environment)
        switch mode {
        case .system: busAddress = systemBusAddress
        case .user: busAddress = BusAddress.user(environment: environment)
        }
    }

    package enum Parsed: Hashable, Sendable {
        case run(DaemonOptions)
        /// To standard output, and done.
        case show(String)
        /// To standard error; exit status 2.
        case wrong(String)
    }

    package static let usage = """
        Usage: greenroomd [--system|--user] [--config DIR] [--runtime DIR] [--state DIR]
                          [--cgroup GROUP] [--log-level LEVEL]

        Launches programs as apps, tells them to enter the background, holds them to deadlines, freezes those that have
        nothing left to do, and takes the largest suspended one when memory is short.

          --system         /etc/greenroom, /run/greenroom, /var/lib/greenroom, the system bus (root's default)
          --user           the same below the XDG folders, and the user's bus (everybody else's default)
          --config DIR     where apps/ID.app and greenroom.conf are
          --runtime DIR    where the bus socket is; also makes apps' RuntimeDirectory= below it
          --state DIR      where receipts are kept; also makes apps' StateDirectory= and CacheDirectory= below it
          --cgroup GROUP   below which apps' cgroups are made; relative to the daemon's own unless it begins with a slash
          --log-level L    error, warning, notice, info (default) or debug
          --version
          --help

        """

    /// - Parameters:
    ///   - arguments: without the program's name.
    ///   - environment: looks up a variable.
    package static func parse(
        _ arguments: [String], isRoot: Bool, version: String, environment: (String) -> String?
    ) -> Parsed {
        var mode: Folders.Mode = isRoot ? .system : .user
        var given: [(String, String)] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            let (name, inline) = split(argument)
            switch name {
            case "--help", "-h": return .show(usage)
            case "--version": return .show("greenroomd \(version)\n")
            case "--system": mode = .system
            case "--user": mode = .user
            case "--config", "--runtime", "--state", "--cgroup", "--log-level":
                guard let value = inline ?? rest.popFirst(), !value.isEmpty else {
                    return .wrong("\(name) needs a value")
                }
                given.append((name, value))
            default: return .wrong("unknown argument “\(argument)”; try greenroomd --help")
            }
        }
        guard let folders = Folders(mode: mode, environment: environment) else {
            return .wrong("HOME is not set to an absolute path; it is needed for --user")
        }
        return apply(given, to: DaemonOptions(mode: mode, folders: folders, environment: environment))
    }

    private static func split(_ argument: String) -> (name: String, value: String?) {
        guard argument.hasPrefix("--"), let sign = argument.firstIndex(of: "=") else { return (argument, nil) }
        return (String(argument[..<sign]), String(argument[argument.index(after: sign)...]))
    }

    private static func apply(_ given: [(String, String)], to options: DaemonOptions) -> Parsed {
        var options = options
        for (name, value) in given {
            if name == "--log-level" {
                guard let level = value == "error" ? .error : LogLevel(name: value) else {
                    return .wrong("--log-level: “\(value)”: expected error, warning, notice, info or debug")
                }
                options.logLevel = level
                continue
            }
            if name == "--cgroup" {
                options.cgroup = value
                continue
            }
            guard value.hasPrefix("/") else { return .wrong("\(name): “\(value)” is no absolute path") }
            let folder = value.count > 1 && value.hasSuffix("/") ? String(value.dropLast()) : value
            switch name {
            case "--config": options.folders.config = folder
            case "--runtime": options.folders.moveRuntime(to: folder)
            default: options.folders.moveState(to: folder)
            }
        }
        let length = options.folders.runtime.utf8.count
        guard length <= Folders.maximumRuntimeLength else {
            return .wrong(
                "the runtime folder's path has \(length) bytes; a socket's path below it leaves room for "
                    + "\(Folders.maximumRuntimeLength)")
        }
        return .run(options)
    }
}
