import Glibc
package import Posix

/// One entry of the user database.
package struct UserRecord: Equatable {
    package var name: String
    package var uid: UInt32
    package var gid: UInt32
    package var home: String
    package var shell: String
}

/// Looks up a user by name or number; `nil` if it does not exist. A number without an entry is a user with the same group
/// number and the home /, as in a container whose user database contains only root.
///
/// The name service may use the network, so this is not called for each launch.
package func lookUpUser(_ nameOrNumber: String) throws(SystemError) -> UserRecord? {
    let number = userNumber(nameOrNumber)
    var entry = passwd()
    let record = try withNameService("getpwnam", nameOrNumber) { buffer, size in
        var found: UnsafeMutablePointer<passwd>?
        let error =
            number.map { getpwuid_r($0, &entry, buffer, size, &found) }
            ?? getpwnam_r(nameOrNumber, &entry, buffer, size, &found)
        return (error, found.map { UserRecord($0.pointee) })
    }
    if let record { return record }
    return number.map { UserRecord(name: nameOrNumber, uid: $0, gid: $0, home: "/", shell: "/bin/sh") }
}

/// Looks up the number of a group by name or number; `nil` if it does not exist. A number needs no entry.
package func lookUpGroup(_ nameOrNumber: String) throws(SystemError) -> UInt32? {
    if let number = userNumber(nameOrNumber) { return number }
    var entry = group()
    return try withNameService("getgrnam", nameOrNumber) { buffer, size in
        var found: UnsafeMutablePointer<group>?
        let error = getgrnam_r(nameOrNumber, &entry, buffer, size, &found)
        return (error, found.map { $0.pointee.gr_gid })
    }
}

/// Returns all groups of a user in the group database, including `gid`.
package func supplementaryGroups(of user: String, gid: UInt32) throws(SystemError) -> [UInt32] {
    try user.refuseNul("getgrouplist")
    var groups = [UInt32](repeating: 0, count: 64)
    while true {
        var count = Int32(groups.count)
        if getgrouplist(user, gid, &groups, &count) >= 0 { return Array(groups[..<Int(count)]) }
        // NGROUPS_MAX is 65,536 (getgroups(2)).
        if groups.count > 65_536 { throw SystemError(call: "getgrouplist", errno: E2BIG, path: user) }
        groups = [UInt32](repeating: 0, count: max(Int(count), groups.count * 2))
    }
}

extension UserRecord {
    fileprivate init(_ entry: passwd) {
        func text(_ pointer: UnsafeMutablePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }
        self.init(
            name: text(entry.pw_name), uid: entry.pw_uid, gid: entry.pw_gid, home: text(entry.pw_dir),
            shell: text(entry.pw_shell))
    }
}

/// Parses a uid or gid in decimal digits. -1 as 32 and as 16 bits is not valid: it means "none" for the kernel (systemd's
/// uid_is_valid() has the same rule).
private func userNumber(_ text: String) -> UInt32? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt32(text) else {
        return nil
    }
    return number == 0xffff_ffff || number == 0xffff ? nil : number
}

/// Calls `body` with a buffer that grows while the result is ERANGE.
private func withNameService<Answer>(
    _ call: String, _ name: String, _ body: (UnsafeMutablePointer<CChar>, Int) -> (Int32, Answer?)
) throws(SystemError) -> Answer? {
    try name.refuseNul(call)
    var size = 1024
    while true {
        var outcome: (error: Int32, answer: Answer?) = (0, nil)
        _ = [CChar](unsafeUninitializedCapacity: size) { buffer, _ in
            outcome = buffer.baseAddress.map { body($0, size) } ?? (ENOMEM, nil)
        }
        switch outcome.error {
        case 0: return outcome.answer
        // The errors that getpwnam_r(3) lists for "not found".
        case ENOENT, ESRCH, EBADF, EPERM: return nil
        case EINTR: continue
        case ERANGE where size < 1 << 20: size *= 4
        default: throw SystemError(call: call, errno: outcome.error, path: name)
        }
    }
}
