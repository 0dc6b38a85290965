import Control
import Linux
import Manifest

/// The options of the command line.
struct Options {
    /// The folder with the socket of the daemon.
    var runtime: String
    /// The Unix socket on which metrics are served.
    var socket: String
    /// Where they are served as well; `nil`: `MetricsListen=` decides.
    var listen: Listen?

    enum Listen: Equatable {
        case off
        case at(ListenAddress)

        /// `off`, or an address; `nil`: it is neither.
        init?(_ text: String) {
            if text == "off" || text.isEmpty {
                self = .off
            } else {
                guard let address = HeldSocket.Address(argument: text) else { return nil }
                self = .at(ListenAddress(address))
            }
        }
    }

    enum Parsed {
        case run(Options)
        /// Print this to standard output, and exit.
        case show(String)
        /// Print this error, and exit with status 2.
        case wrong(String)
    }

    static let usage = """
        Usage: greenroom-exporter [--system|--user] [--runtime DIR] [--socket PATH] [--listen ADDRESS]

        Serves metrics of greenroomd to Prometheus, at /metrics.

          --system          Ask the system's greenroomd (default for root)
          --user            Ask the user's greenroomd (default for other users)
          --runtime DIR     Ask the greenroomd with this runtime folder
          --socket PATH     Serve the metrics on this Unix socket (default: metrics in the runtime folder)
          --listen ADDRESS  Serve them at this address as well, such as 127.0.0.1:9187, or off (default: MetricsListen=)
          --version         Print the version
          --help            Print this help

        """

    static func parse(_ arguments: [String], isRoot: Bool, environment: (String) -> String?) -> Parsed {
        var isSystem = isRoot
        var (runtime, socket): (String?, String?) = (nil, nil)
        var listen: Listen?
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = argument.hasPrefix("--") ? String(parts[0]) : argument
            let inline = argument.hasPrefix("--") && parts.count == 2 ? String(parts[1]) : nil
            switch name {
            case "--help", "-h": return .show(usage)
            case "--version": return .show("greenroom-exporter \(ControlNames.version)\n")
            case "--system": isSystem = true
            case "--user": isSystem = false
            case "--runtime", "--socket", "--listen":
                guard let value = inline ?? rest.popFirst(), !value.isEmpty else {
                    return .wrong("\(name): missing value")
                }
                // bind(2) is given the folder of a socket and its name.
                if name != "--listen", !value.hasPrefix("/") {
                    return .wrong("\(name): invalid value '\(value)'; expected an absolute path")
                }
                if name == "--runtime" { runtime = value }
                if name == "--socket" { socket = value }
                guard name == "--listen" else { continue }
                listen = Listen(value)
                if listen == nil {
                    return .wrong(
                        "--listen: invalid value '\(value)'; expected off, or an address such as 127.0.0.1:9187")
                }
            default: return .wrong("unknown argument '\(argument)'; see greenroom-exporter --help")
            }
        }
        guard let folder = runtime ?? (isSystem ? "/run/greenroom" : userRuntime(environment)) else {
            return .wrong("neither XDG_RUNTIME_DIR nor HOME is set to an absolute path; use --runtime DIR")
        }
        return .run(Options(runtime: folder, socket: socket ?? folder + "/metrics", listen: listen))
    }

    /// The folder of the user's daemon.
    private static func userRuntime(_ environment: (String) -> String?) -> String? {
        func folder(_ name: String) -> String? { environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
        return (folder("XDG_RUNTIME_DIR") ?? folder("HOME").map { $0 + "/.cache" }).map { $0 + "/greenroom" }
    }
}

extension ListenAddress {
    init(_ address: HeldSocket.Address) {
        switch address {
        case .port(let port): self = .port(port)
        case .ipv4(let text, let port): self = .ipv4(text, port)
        case .ipv6(let text, let port): self = .ipv6(text, port)
        case .path(let path): self = .path(path)
        case .abstract(let name): self = .abstract(name)
        }
    }
}
