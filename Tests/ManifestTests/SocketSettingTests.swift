import Glibc
import LifecycleCore
import Testing

@testable import Manifest

@Suite("Settings of held sockets")
struct SocketSettingTests {
    private func sockets(_ settings: String...) throws -> SocketSettings {
        try accepted("Wake", settings.joined(separator: "\n")).sockets
    }

    /// What systemd 252 makes of `ListenStream=` (the output of `systemd-analyze verify`, which escapes some characters), and what
    /// is here.
    private static let addresses: [(written: String, systemd: String?, here: String?)] = [
        ("80", "[::]:80", "80"), ("65535", "[::]:65535", "65535"), ("0", nil, nil), ("080", nil, nil),
        ("65536", nil, nil), ("-1", nil, nil), ("80 81", nil, nil), ("http", nil, nil), ("\u{ff11}80", nil, nil),
        // Ports are plain decimal numbers here.
        ("+80", "[::]:80", nil), ("0x50", "[::]:80", nil),
        ("127.0.0.1:80", "127.0.0.1:80", "127.0.0.1:80"), ("0.0.0.0:1", "0.0.0.0:1", "0.0.0.0:1"),
        ("127.0.0.1:0", nil, nil), ("127.0.0.1:080", nil, nil), ("127.1:80", nil, nil), ("127.0.0.01:80", nil, nil),
        ("256.0.0.1:80", nil, nil), ("127.0.0.1", nil, nil), ("1.2.3.4.5:80", nil, nil), ("1.2.3:80", nil, nil),
        ("localhost:80", nil, nil), (":80", nil, nil), ("*:80", nil, nil), ("1.2.3.4:65536", nil, nil),
        ("[::1]:80", "[::1]:80", "[::1]:80"), ("[::]:80", "[::]:80", "[::]:80"),
        ("[0:0:0:0:0:0:0:1]:81", "[::1]:81", "[::1]:81"),
        ("[::ffff:1.2.3.4]:80", "[::ffff:1.2.3.4]:80", "[::ffff:1.2.3.4]:80"),
        ("[::1.2.3.4]:80", "[::1.2.3.4]:80", "[::1.2.3.4]:80"), ("[::102:304]:80", "[::1.2.3.4]:80", "[::1.2.3.4]:80"),
        ("[2001:DB8::0:1]:80", "[2001:db8::1]:80", "[2001:db8::1]:80"),
        ("[1:2:3:4:5:6:7::]:80", "[1:2:3:4:5:6:7:0]:80", "[1:2:3:4:5:6:7:0]:80"),
        ("[1:0:0:2:0:0:0:3]:80", "[1:0:0:2::3]:80", "[1:0:0:2::3]:80"), ("[0:0:1::]:5", "[0:0:1::]:5", "[0:0:1::]:5"),
        ("[1::2:0:0]:5", "[1::2:0:0]:5", "[1::2:0:0]:5"),
        ("[1:2:3:4:5:6:1.2.3.4]:5", "[1:2:3:4:5:6:102:304]:5", "[1:2:3:4:5:6:102:304]:5"),
        ("[::1]", nil, nil), ("[::1]:0", nil, nil), ("[g::1]:80", nil, nil), ("[1:2:3:4:5:6:7:8:9]:80", nil, nil),
        ("[1::2::3]:80", nil, nil), ("[12345::]:80", nil, nil), ("[::1]80", nil, nil), ("[]:80", nil, nil),
        ("[:]:80", nil, nil), ("[:::]:80", nil, nil), ("[:1::]:80", nil, nil), ("[1::2:]:80", nil, nil),
        ("[1:2]:80", nil, nil), ("[1:2:3:4:5:6:7::8]:80", nil, nil),
        ("[::1.2.3]:80", nil, nil), ("[1.2.3.4::]:80", nil, nil), ("::1:80", nil, nil), ("::1", nil, nil),
        // Interfaces and vsock are not supported.
        ("[fe80::1]:80%%lo", "[fe80::1]:80%lo", nil), ("vsock:2:80", "vsock:2:80", nil),
        ("/run/a", "/run/a", "/run/a"), ("/run/a b#c", "/run/a b#c", "/run/a b#c"),
        ("/run/\u{e4}", "/run/\\303\\244", "/run/\u{e4}"), ("/run/a\\x20b", "/run/a\\\\x20b", "/run/a\\x20b"),
        ("/run/%%x", "/run/%x", "/run/%x"), ("/var/run/e", "/run/e", "/run/e"), ("/", nil, nil),
        // Equal paths are equal values here, and a socket is no directory.
        ("/run//b", "/run//b", "/run/b"), ("/run/./c", "/run/./c", "/run/c"), ("/run/a/", "/run/a/", nil),
        ("run/f", nil, nil), ("~/x", nil, nil), ("\"/run/q\"", nil, nil),
        (
            "/" + String(repeating: "x", count: 106), "/" + String(repeating: "x", count: 106),
            "/" + String(repeating: "x", count: 106)
        ),
        ("/" + String(repeating: "x", count: 107), nil, nil),
        ("@a b", "@a b", "@a b"), ("@", nil, nil), ("@" + String(repeating: "y", count: 107), nil, nil),
        (
            "@" + String(repeating: "y", count: 106), "@" + String(repeating: "y", count: 106),
            "@" + String(repeating: "y", count: 106)
        ),
    ]

    @Test("addresses are those of systemd.socket(5), with the documented differences (L29)")
    func addresses() throws {
        for (written, _, here) in Self.addresses {
            guard let here else {
                try expectRefused("Wake", "ListenStream", written, "expected a port, an address and port")
                continue
            }
            #expect(try sockets("ListenStream=\(written)").all.map(\.address.description) == [here], "\(written)")
        }
    }

    @Test("the table has what the systemd of this machine makes of the same unit")
    func comparison() throws {
        let version = try output("systemd-analyze --version 2>/dev/null")
        // Later versions accept more; machines without systemd have nothing to compare.
        guard version.hasPrefix("systemd 252") else { return }
        var template = Array("/tmp/greenroom-manifest-XXXXXX".utf8CString)
        let folder = String(cString: try #require(mkdtemp(&template)))
        defer { _ = try? output("rm -r \(folder)") }
        let lines = Self.addresses.map { "ListenStream=\($0.written)\n" }
        try write("[Socket]\nService=t.service\n" + lines.joined(), to: "\(folder)/t.socket")
        try write("[Service]\nExecStart=/bin/true\n", to: "\(folder)/t.service")
        let shown = try output(
            "cd \(folder) && XDG_RUNTIME_DIR=\(folder) SYSTEMD_UNIT_PATH=\(folder) SYSTEMD_LOG_LEVEL=debug "
                + "systemd-analyze verify --user --man=no ./t.socket 2>&1"
        ).split(separator: "\n").map(String.init)
        let mark = "ListenStream: "
        let accepted = shown.compactMap { line in
            line.firstIndex(of: "L").map { String(line[$0...]) }.flatMap {
                $0.hasPrefix(mark) ? String($0.dropFirst(mark.count)) : nil
            }
        }
        #expect(accepted == Self.addresses.compactMap(\.systemd))
        for (index, address) in Self.addresses.enumerated() where address.systemd == nil {
            let position = "t.socket:\(index + 3): Failed to parse address value"
            #expect(shown.contains { $0.contains(position) }, "\(address.written)")
        }
    }

    private func output(_ command: String) throws -> String {
        let stream = try #require(popen(command, "re"))
        defer { pclose(stream) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&buffer, 1, buffer.count, stream), count > 0 { bytes += buffer.prefix(count) }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func write(_ text: String, to path: String) throws {
        let file = try #require(fopen(path, "we"))
        fputs(text, file)
        fclose(file)
    }

    @Test("refused addresses have a reason")
    func reasons() throws {
        try expectRefused("Wake", "ListenStream", "/run/../etc/a", "'/run/../etc/a' contains '..'")
        try expectRefused("Wake", "ListenStream", "vsock:2:80", "vsock addresses are not supported")
        try expectRefused("Wake", "ListenStream", "[fe80::1]:80%%lo", "interface scopes are not supported")
        try expectRefused(
            "Wake", "ListenDatagram", "/" + String(repeating: "a", count: 107),
            "an address of 108 bytes exceeds the maximum of 107")
        try expectRefused(
            "Wake", "ListenSequentialPacket", "127.0.0.1:80",
            "'127.0.0.1:80' is an address of the internet family; expected a path, or an abstract name")
        try expectRefused("Wake", "ListenSequentialPacket", "80", "an address of the internet family")
        try expectRefused("Wake", "ListenStream", "/run/\u{85}", "contains a control character")
    }

    @Test(
        "sockets are in the order of the file, and an empty value of any of the keys removes all of them, as in systemd"
    )
    func lists() throws {
        let all = try sockets(
            "ListenDatagram=@b", "ListenStream=80", "ListenSequentialPacket=/run/c", "ListenStream=81"
        ).all
        #expect(
            all == [
                HeldSocket(.datagram, .abstract("b")), HeldSocket(.stream, .port(80)),
                HeldSocket(.sequentialPacket, .path("/run/c")), HeldSocket(.stream, .port(81)),
            ])
        #expect(
            try sockets("ListenStream=80", "ListenDatagram=81", "ListenSequentialPacket=", "ListenStream=82").all == [
                HeldSocket(.stream, .port(82))
            ])
        let many = (1...64).map { "ListenStream=\($0)" }.joined(separator: "\n")
        #expect(try sockets(many).all.count == 64)
        let reading = try read(manifest("Wake", many, "ListenStream=65"))
        #expect(
            reading.lines.count == 1 && reading.lines[0].contains("68:14: error: ListenStream=: more than 64 sockets"))
    }

    @Test("an address that is assigned more than once is an error, in whatever form it is written")
    func duplicates() throws {
        func second(_ settings: String...) throws -> [String] {
            try read(manifest("Wake", settings.joined(separator: "\n"))).lines
        }
        for (first, again) in [
            ("ListenStream=80", "ListenStream=80"), ("ListenStream=[::1]:80", "ListenStream=[0::1]:80"),
            ("ListenStream=/run/a", "ListenDatagram=/var/run//a"), ("ListenStream=@a", "ListenSequentialPacket=@a"),
        ] {
            let lines = try second(first, again)
            #expect(lines.count == 1 && lines[0].hasPrefix("a.app:5:"), "\(lines)")
            #expect(lines.first?.contains("is assigned more than once; expected") == true, "\(lines)")
        }
        #expect(
            try second("ListenStream=80", "ListenDatagram=80", "ListenStream=127.0.0.1:80", "ListenStream=81") == [])
        #expect(try second("ListenStream=80", "ListenStream=", "ListenStream=80") == [])
    }

    @Test("the other settings of sockets have systemd's names, values and defaults")
    func values() throws {
        let defaults = try sockets("ListenStream=/run/a")
        #expect(defaults.mode == 0o666 && defaults.directoryMode == 0o755 && defaults.backlog == .max)
        #expect(defaults.name == nil && defaults.user == nil && defaults.group == nil)
        let all = try sockets(
            "ListenStream=/run/a", "FileDescriptorName=web one", "SocketUser=www-data", "SocketGroup=33",
            "SocketMode=0600",
            "DirectoryMode=7777", "Backlog=5", "Accept=no", "Accept=false")
        #expect(all.name == "web one" && all.user == "www-data" && all.group == "33" && all.backlog == 5)
        #expect(all.mode == 0o600 && all.directoryMode == 0o7777)
        #expect(try sockets("ListenStream=/run/a", "Backlog=5", "Backlog=").backlog == .max)
        #expect(try sockets("ListenStream=/run/a", "Backlog=4294967295").backlog == .max)
        for value in ["a:b", "\u{e4}", String(repeating: "a", count: 256)] {
            try expectRefused("Wake", "FileDescriptorName", value, "printable ASCII characters")
        }
        for value in ["10000", "8", "-1", "u=rw", "0o600"] {
            try expectRefused("Wake", "SocketMode", value, "an octal number")
            try expectRefused("Wake", "DirectoryMode", value, "an octal number")
        }
        // 010 is 8 to systemd, and 0x10 is 16.
        for value in ["4294967296", "-1", "5K", "infinity", "010", "0x10"] {
            try expectRefused("Wake", "Backlog", value, "a number from 0 to 4294967295")
        }
        try expectRefused("Wake", "SocketUser", "65535", "a user name or UID")
        try expectRefused("Wake", "SocketGroup", "a b", "a group name or GID")
        try expectRefused("Wake", "Accept", "maybe", "invalid value 'maybe'; expected no")
        try expectRefused("Wake", "Accept", "yes", "an app accepts its connections itself")
    }

    @Test("options of sockets have systemd's names, values and defaults")
    func options() throws {
        let defaults = try sockets("ListenStream=80")
        #expect(!defaults.isNonBlocking && !defaults.reusesPort && !defaults.isFreeBind)
        #expect(defaults.ipv6Only == .default && !defaults.keepsAlive && !defaults.hasNoDelay)
        let all = try sockets(
            "ListenStream=80", "NonBlocking=yes", "ReusePort=1", "FreeBind=true", "BindIPv6Only=both", "KeepAlive=on",
            "NoDelay=t")
        #expect(all.isNonBlocking && all.reusesPort && all.isFreeBind)
        #expect(all.ipv6Only == .both && all.keepsAlive && all.hasNoDelay)
        for (value, expected) in Self.ipv6Only {
            guard let expected else {
                try expectRefused("Wake", "BindIPv6Only", value, "expected default, both or ipv6-only")
                continue
            }
            #expect(try sockets("ListenStream=80", "BindIPv6Only=\(value)").ipv6Only == expected, "\(value)")
        }
        #expect(try sockets("ListenStream=80", "BindIPv6Only=both", "BindIPv6Only=").ipv6Only == .default)
        for key in ["NonBlocking", "ReusePort", "FreeBind", "KeepAlive", "NoDelay"] {
            try expectRefused("Wake", key, "maybe", "expected yes or no")
        }
    }

    /// What systemd 252 makes of `BindIPv6Only=`; `nil`: it is refused, here as there.
    private static let ipv6Only: [(String, SocketSettings.IPv6Only?)] = [
        ("default", .default), ("both", .both), ("ipv6-only", .only), ("yes", .only), ("true", .only), ("no", .both),
        ("0", .both), ("IPv6-only", nil), ("only", nil), ("2", nil), ("both ipv6-only", nil),
    ]

    @Test("the systemd of this machine accepts and refuses the same values of options")
    func optionComparison() throws {
        guard try output("systemd-analyze --version 2>/dev/null").hasPrefix("systemd 252") else { return }
        let booleans = ["yes", "no", "1", "0", "t", "F", "on", "Off", "Y", "n", "TRUE", "maybe", "2", "yes no", "ja"]
        let keys = ["ReusePort", "FreeBind", "KeepAlive", "NoDelay"]
        var lines = Self.ipv6Only.map { (key: "BindIPv6Only", value: $0.0) }
        for key in keys { lines += booleans.map { (key, $0) } }
        let refused = try refusedLines("Socket", lines.map { "\($0.key)=\($0.value)" }, "t.socket")
        for (index, line) in lines.enumerated() {
            let isRefused = try read(manifest("Wake", "ListenStream=80", "\(line.key)=\(line.value)")).manifest == nil
            #expect(isRefused == refused.contains(index), "\(line)")
        }
        // The setting of a service there.
        let ofService = try refusedLines("Service", booleans.map { "NonBlocking=\($0)" }, "t.service")
        for (index, value) in booleans.enumerated() {
            let isRefused = try read(manifest("Wake", "ListenStream=80", "NonBlocking=\(value)")).manifest == nil
            #expect(isRefused == ofService.contains(index), "\(value)")
        }
    }

    /// The positions of the lines of a section that systemd ignores with a warning.
    private func refusedLines(_ section: String, _ lines: [String], _ name: String) throws -> Set<Int> {
        var template = Array("/tmp/greenroom-manifest-XXXXXX".utf8CString)
        let folder = String(cString: try #require(mkdtemp(&template)))
        defer { _ = try? output("rm -r \(folder)") }
        let rest = section == "Socket" ? "ListenStream=80\nService=t.service\n" : "ExecStart=/bin/true\n"
        try write("[Service]\nExecStart=/bin/true\n", to: "\(folder)/t.service")
        try write("[\(section)]\n" + lines.map { $0 + "\n" }.joined() + rest, to: "\(folder)/\(name)")
        let shown = try output(
            "cd \(folder) && XDG_RUNTIME_DIR=\(folder) SYSTEMD_UNIT_PATH=\(folder) systemd-analyze verify --user --man=no "
                + "./\(name) 2>&1")
        return Set(lines.indices.filter { shown.contains("\(name):\($0 + 2): ") })
    }

    @Test("options that concern no socket of the app cause warnings")
    func optionWarnings() throws {
        func keys(_ settings: String...) throws -> [String] {
            try read(manifest("Wake", settings.joined(separator: "\n"))).diagnostics.map {
                String($0.message.prefix { $0 != "=" })
            }
        }
        let all = ["BindIPv6Only=both", "FreeBind=1", "ReusePort=1", "KeepAlive=1", "NoDelay=1"]
        let names = all.map { String($0.prefix { $0 != "=" }) }
        let lines = all.joined(separator: "\n")
        #expect(try keys("ListenStream=80", lines, "NonBlocking=1") == [])
        #expect(try keys("ListenStream=/run/a", lines, "NonBlocking=1") == names)
        #expect(try keys("ListenStream=127.0.0.1:80", lines) == ["BindIPv6Only"])
        #expect(try keys("ListenDatagram=80", lines) == ["KeepAlive", "NoDelay"])
        #expect(try keys(lines, "NonBlocking=1") == names + ["NonBlocking"])
    }

    @Test("ConnectionWaitSec= is 60s and UnloadAfterSec= infinity by default, and both are at least 1s (L11, L29)")
    func times() throws {
        let defaults = try accepted("Wake", "ListenStream=80").policy
        #expect(defaults.holdsSockets && defaults.connectionWait == .seconds(60) && defaults.unloadAfter == nil)
        #expect(try !accepted("Wake", "").policy.holdsSockets)
        let policy = try accepted(
            "Wake", "ListenStream=80", "ConnectionWaitSec=5min", "[Lifecycle]", "UnloadAfterSec=1h"
        ).policy
        #expect(policy.connectionWait == .seconds(300) && policy.unloadAfter == .seconds(3600))
        let endless = try accepted(
            "Wake", "ListenStream=80", "ConnectionWaitSec=infinity", "[Lifecycle]", "UnloadAfterSec=1",
            "UnloadAfterSec=infinity"
        ).policy
        #expect(endless.connectionWait == nil && endless.unloadAfter == nil)
        for value in ["0", "999ms", "soon", "-1"] {
            try expectRefused("Wake", "ConnectionWaitSec", value, "a time span of at least 1s")
            try expectRefused("Lifecycle", "UnloadAfterSec", value, "a time span of at least 1s")
        }
    }

    @Test("settings that have no effect because of the sockets cause warnings")
    func warnings() throws {
        let none = "has no effect: there is no ListenStream=, ListenDatagram= or ListenSequentialPacket="
        #expect(
            try read(
                manifest(
                    "Wake", "FileDescriptorName=a", "SocketUser=a", "SocketMode=600", "Accept=no",
                    "ConnectionWaitSec=5",
                    "[Lifecycle]", "UnloadAfterSec=5")
            ).lines == [
                "a.app:4:1: warning: FileDescriptorName= \(none)", "a.app:5:1: warning: SocketUser= \(none)",
                "a.app:6:1: warning: SocketMode= \(none)", "a.app:7:1: warning: Accept= \(none)",
                "a.app:8:1: warning: ConnectionWaitSec= \(none)",
                "a.app:10:1: warning: UnloadAfterSec= without ListenStream=: after the app has been ended, only a request "
                    + "launches it again",
            ])
        #expect(
            try read(manifest("Wake", "ListenDatagram=80", "SocketGroup=a", "Backlog=5", "ConnectionWaitSec=5")).lines
                == [
                    "a.app:5:1: warning: SocketGroup= has no effect: no socket is in the file system",
                    "a.app:6:1: warning: Backlog= has no effect: a datagram socket has no connections",
                    "a.app:7:1: warning: ConnectionWaitSec= has no effect: a datagram socket has no connections",
                ])
        #expect(
            try read(manifest("Wake", "ListenStream=80", "[Lifecycle]", "ExitsOnSuspend=yes", "UnloadAfterSec=5")).lines
                == [
                    "a.app:7:1: warning: UnloadAfterSec= has no effect: with ExitsOnSuspend=yes the app is terminated instead of "
                        + "suspended"
                ])
        let invalid = try read(manifest("Wake", "ListenStream=x", "SocketMode=600")).diagnostics
        #expect(invalid.map(\.severity) == [.error], "an invalid address causes no further warning")
        #expect(try read(manifest("Wake", "ListenStream=/run/a", "SocketMode=600", "Backlog=5")).lines == [])
    }
}
