import LifecycleCore

/// The settings of sockets that the daemon holds for an app (L29), with the names, defaults and meanings of systemd.socket(5).
extension AppManifest {
    /// The most sockets of one app. Each is a descriptor of the daemon.
    package static let maximumSockets = 64

    static func socketSettings(_ specifiers: Specifiers) -> [Setting<AppManifest>] {
        HeldSocket.Kind.allCases.map { listen($0, specifiers) } + [
            .value(
                "Wake", "FileDescriptorName", "1 to 255 printable ASCII characters without ':'", \.sockets.name
            ) { text throws(ValueError) -> String?? in
                let name = try specifiers.expanded(text)
                return isDescriptorName(name) ? .some(name) : nil
            },
            account("Wake", "SocketUser", "a user name or UID", \.sockets.user, specifiers),
            account("Wake", "SocketGroup", "a group name or GID", \.sockets.group, specifiers),
            .value("Wake", "SocketMode", "an octal number up to 7777", \.sockets.mode) { parseOctal($0, upTo: 0o7777) },
            .value("Wake", "DirectoryMode", "an octal number up to 7777", \.sockets.directoryMode) {
                parseOctal($0, upTo: 0o7777)
            },
            .value("Wake", "Backlog", "a number from 0 to 4294967295", \.sockets.backlog, parseBacklog),
            .value(
                "Wake", "BindIPv6Only", "default, both or ipv6-only", \.sockets.ipv6Only, parseIPv6Only),
            .flag("Wake", "FreeBind", \.sockets.isFreeBind),
            .flag("Wake", "ReusePort", \.sockets.reusesPort),
            .flag("Wake", "KeepAlive", \.sockets.keepsAlive),
            .flag("Wake", "NoDelay", \.sockets.hasNoDelay),
            .flag("Wake", "NonBlocking", \.sockets.isNonBlocking),
            Setting(
                section: "Wake", key: "Accept", expected: "no",
                apply: { _, text throws(ValueError) in try checkAccept(text) }, reset: { _, _ in }),
            .value(
                "Wake", "ConnectionWaitSec", "a time span of at least 1s such as 60s, 5min or infinity",
                \.policy.connectionWait, parseLongerTime),
            .value(
                "Lifecycle", "UnloadAfterSec", "a time span of at least 1s such as 10min, 1h or infinity",
                \.policy.unloadAfter, parseLongerTime),
        ]
    }

    private static func listen(_ kind: HeldSocket.Kind, _ specifiers: Specifiers) -> Setting<AppManifest> {
        Setting(
            section: "Wake", key: kind.key, expected: kind.expected,
            apply: { manifest, text throws(ValueError) in try manifest.addSocket(kind, specifiers.expanded(text)) },
            // As in systemd, an empty value of one of these keys removes the sockets of all of them.
            reset: { manifest, _ in manifest.sockets.all = [] })
    }

    private mutating func addSocket(_ kind: HeldSocket.Kind, _ text: String) throws(ValueError) {
        let socket = HeldSocket(kind, try HeldSocket.Address(parsing: text))
        guard kind != .sequentialPacket || !socket.address.isInternet else {
            throw ValueError(problem: "\(quoted(text)) is an address of the internet family")
        }
        guard self.sockets.all.count < Self.maximumSockets else {
            throw ValueError(problem: "more than \(Self.maximumSockets) sockets")
        }
        // TCP and UDP have ports of their own; a path or an abstract name belongs to one socket of any kind.
        let isTaken = self.sockets.all.contains {
            $0.address == socket.address && ($0.kind == kind || !socket.address.isInternet)
        }
        guard !isTaken else { throw ValueError(problem: "the address \(quoted(text)) is assigned more than once") }
        self.sockets.all.append(socket)
    }

    /// Warns of settings that have no effect because of the sockets, and of an app that nothing brings back.
    func checkSockets(_ reader: SettingsReader<AppManifest>, _ file: String, _ diagnostics: inout DiagnosticList) {
        func warn(_ key: String, _ sentence: String) {
            guard reader.assignedKeys.contains(key) else { return }
            diagnostics.warn(reader.locations[key] ?? .whole(file), sentence)
        }
        func warnOfNoEffect(_ keys: [String], _ reason: String) {
            for key in keys { warn(key, "\(key)= has no effect: \(reason)") }
        }
        let inFiles = ["SocketUser", "SocketGroup", "SocketMode", "DirectoryMode"]
        let (ofInternet, ofTCP) = (["FreeBind", "ReusePort"], ["KeepAlive", "NoDelay"])
        if policy.exitsOnSuspend, policy.unloadAfter != nil {
            warnOfNoEffect(["UnloadAfterSec"], "with ExitsOnSuspend=yes the app is terminated instead of suspended")
        }
        guard !self.sockets.all.isEmpty else {
            // An invalid address has an error already.
            let keys = HeldSocket.Kind.allCases.map(\.key)
            guard reader.invalidKeys.isDisjoint(with: keys) else { return }
            warnOfNoEffect(
                ["FileDescriptorName"] + inFiles + ["Backlog", "BindIPv6Only"] + ofInternet + ofTCP
                    + ["NonBlocking", "Accept", "ConnectionWaitSec"],
                "there is no ListenStream=, ListenDatagram= or ListenSequentialPacket=")
            if policy.unloadAfter != nil, !policy.exitsOnSuspend {
                warn(
                    "UnloadAfterSec",
                    "UnloadAfterSec= without ListenStream=: after the app has been ended, only a request launches it again"
                )
            }
            return
        }
        let hasFile = self.sockets.all.contains { if case .path = $0.address { true } else { false } }
        if !hasFile { warnOfNoEffect(inFiles, "no socket is in the file system") }
        if !self.sockets.all.contains(where: \.address.mayBeIPv6) {
            warnOfNoEffect(["BindIPv6Only"], "no socket has a port alone or an IPv6 address")
        }
        if !self.sockets.all.contains(where: \.address.isInternet) {
            warnOfNoEffect(ofInternet, "no socket has a port")
        }
        if !self.sockets.all.contains(where: { $0.kind == .stream && $0.address.isInternet }) {
            warnOfNoEffect(ofTCP, "no socket has connections of TCP")
        }
        if self.sockets.all.allSatisfy({ $0.kind == .datagram }) {
            warnOfNoEffect(["Backlog", "ConnectionWaitSec"], "a datagram socket has no connections")
        }
    }
}

extension HeldSocket.Kind {
    /// The key that lists sockets of this kind.
    package var key: String {
        switch self {
        case .stream: "ListenStream"
        case .datagram: "ListenDatagram"
        case .sequentialPacket: "ListenSequentialPacket"
        }
    }

    fileprivate var expected: String {
        let unix = "a path, or an abstract name such as @name"
        return self == .sequentialPacket
            ? unix : "a port, an address and port such as 127.0.0.1:80 or [::1]:80, " + unix
    }
}

/// As systemd checks names of descriptors: `:` separates them in LISTEN_FDNAMES (sd_listen_fds(3)).
private func isDescriptorName(_ text: String) -> Bool {
    (1...255).contains(text.utf8.count)
        && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ":") }
}

/// Decimal digits without a leading zero: to systemd that is an octal number.
private func parseBacklog(_ text: String) -> UInt32? {
    guard text == "0" || text.utf8.first != UInt8(ascii: "0") else { return nil }
    return number(Array(text.utf8)[...]).flatMap { UInt32(exactly: $0) }
}

/// As in systemd, a boolean says whether it is IPv6 only.
private func parseIPv6Only(_ text: String) -> SocketSettings.IPv6Only? {
    SocketSettings.IPv6Only(rawValue: text) ?? parseBoolean(text).map { $0 ? .only : .both }
}

private func checkAccept(_ text: String) throws(ValueError) {
    switch parseBoolean(text) {
    case false: break
    case true:
        throw ValueError(
            problem:
                "'yes' is not supported: an app accepts its connections itself, and has one process for all of them")
    case nil: throw ValueError()
    }
}

/// A time span of at least one second.
private func parseLongerTime(_ text: String) -> Duration?? {
    guard let time = parseTimeSpan(text) else { return nil }
    return (time ?? .seconds(1)) >= .seconds(1) ? .some(time) : nil
}
