import Glibc

/// The machine and the user of this process, as the specifiers of systemd.unit(5) describe them. `nil`: unknown.
package struct MachineFacts: Equatable, Sendable {
    package var hostName: String
    /// 32 hexadecimal digits.
    package var machineID: String?
    package var bootID: String?
    /// As `uname -r` prints it.
    package var kernelRelease: String
    /// systemd's name of the architecture, such as `x86-64`.
    package var architecture: String
    package var temporaryDirectory: String
    /// For files that survive a restart of the machine.
    package var largeTemporaryDirectory: String
    package var userID: UInt32
    package var groupID: UInt32
    package var userName: String
    package var groupName: String
    package var home: String?
    package var shell: String?

    /// That of /etc/machine-id, without the user database.
    package static var machineID: String? { identifier("/etc/machine-id") }

    /// Reads the facts. It may ask the user database, except for root.
    package static func read() -> MachineFacts {
        var system = utsname()
        uname(&system)
        let (uid, gid) = (geteuid(), getegid())
        let user = uid == 0 ? nil : passwordEntry(uid)
        let temporary = ["TMPDIR", "TEMP", "TMP"].lazy.compactMap(absoluteVariable).first(where: isDirectory)
        return MachineFacts(
            hostName: hostName(text(of: system.nodename)), machineID: identifier("/etc/machine-id"),
            bootID: identifier("/proc/sys/kernel/random/boot_id"), kernelRelease: text(of: system.release),
            architecture: architecture(text(of: system.machine)), temporaryDirectory: temporary ?? "/tmp",
            largeTemporaryDirectory: temporary ?? "/var/tmp", userID: uid, groupID: gid,
            userName: uid == 0 ? "root" : user?.name ?? "\(uid)",
            groupName: gid == 0 ? "root" : groupName(gid) ?? "\(gid)",
            home: absoluteVariable("HOME") ?? (uid == 0 ? "/root" : user?.home),
            shell: absoluteVariable("SHELL") ?? (uid == 0 ? "/bin/bash" : user?.shell))
    }

    /// systemd calls a machine without a name so.
    private static func hostName(_ name: String) -> String { name.isEmpty || name == "(none)" ? "localhost" : name }

    /// An ID as 32 hexadecimal digits, with or without hyphens.
    private static func identifier(_ path: String) -> String? {
        guard let bytes = try? readFile(at: path, limit: 64) else { return nil }
        let digits = bytes.prefix { $0 != UInt8(ascii: "\n") }.filter { $0 != UInt8(ascii: "-") }
        let text = String(decoding: digits, as: UTF8.self)
        return text.utf8.count == 32 && text.allSatisfy(\.isHexDigit) ? text : nil
    }

    /// The name that systemd gives to a machine of uname(2) (systemd.unit(5), ConditionArchitecture=).
    static func architecture(_ machine: String) -> String {
        switch machine {
        case "x86_64": "x86-64"
        case "i386", "i486", "i586", "i686": "x86"
        case "aarch64": "arm64"
        case "aarch64_be": "arm64-be"
        case "ppc64le": "ppc64-le"
        case "ppcle": "ppc-le"
        case _ where machine.hasPrefix("armv"): machine.hasSuffix("b") ? "arm-be" : "arm"
        default: machine
        }
    }

    private static func absoluteVariable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    private static func isDirectory(_ path: String) -> Bool {
        var about = stat()
        return stat(path, &about) == 0 && about.st_mode & S_IFMT == S_IFDIR
    }

    private static func text<Characters>(of characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    private static func passwordEntry(_ uid: uid_t) -> (name: String, home: String, shell: String)? {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        guard getpwuid_r(uid, &entry, &buffer, buffer.count, &found) == 0, let found else { return nil }
        func text(_ pointer: UnsafeMutablePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }
        return (text(found.pointee.pw_name), text(found.pointee.pw_dir), text(found.pointee.pw_shell))
    }

    private static func groupName(_ gid: gid_t) -> String? {
        var entry = group()
        var found: UnsafeMutablePointer<group>?
        var buffer = [CChar](repeating: 0, count: 64 << 10)
        guard getgrgid_r(gid, &entry, &buffer, buffer.count, &found) == 0, let found else { return nil }
        return found.pointee.gr_name.map { String(cString: $0) }
    }
}
