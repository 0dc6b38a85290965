import Glibc
import Linux
import Manifest
import Posix

/// The user and groups that an app runs as (`User=`, `Group=`, `SupplementaryGroups=`).
struct AppUser {
    let record: UserRecord
    let credentials: Credentials

    init(record: UserRecord, credentials: Credentials) {
        self.record = record
        self.credentials = credentials
    }

    var owner: Owner { Owner(uid: credentials.uid, gid: credentials.gid) }

    /// Looks up what the manifest names.
    /// - Returns: `nil` if the app runs as the daemon does.
    /// - Throws: `Problem` if a user or group does not exist, or if the daemon may not change to it.
    init?(_ manifest: AppManifest) throws {
        guard manifest.user != nil || manifest.group != nil || !manifest.supplementaryGroups.isEmpty else { return nil }
        let name = manifest.user ?? String(geteuid())
        guard let record = try lookUpUser(name) else { throw Problem("User=\(name): there is no such user") }
        var gid = record.gid
        if let group = manifest.group { gid = try Self.group(group, "Group") }
        var groups = try Linux.supplementaryGroups(of: record.name, gid: gid)
        for name in manifest.supplementaryGroups {
            let id = try Self.group(name, "SupplementaryGroups")
            if !groups.contains(id) { groups.append(id) }
        }
        guard geteuid() == 0 || (record.uid == geteuid() && gid == getegid()) else {
            throw Problem("User=\(name): only root can run apps as another user")
        }
        self.record = record
        credentials = Credentials(uid: record.uid, gid: gid, groups: groups)
    }

    private static func group(_ name: String, _ key: String) throws -> UInt32 {
        guard let gid = try lookUpGroup(name) else { throw Problem("\(key)=\(name): there is no such group") }
        return gid
    }
}
