import Glibc
import Manifest

/// Whom apps run as, remembered for a while: the daemon's one thread waits for the name service, which may ask the network
/// (getgrouplist(3) asks every one that nsswitch.conf names, also about a local user), and not at each launch.
///
/// Forgotten at a reload, when a local database changes, and after ten minutes, for what changes elsewhere. A user that was
/// not found is asked for again each time.
final class UserCache {
    /// As long as nscd(8) keeps users (`positive-time-to-live passwd 600`).
    static let lifetime = Duration.seconds(600)
    static let databases = ["/etc/passwd", "/etc/group", "/etc/nsswitch.conf"]

    private struct Key: Hashable {
        var user: String?
        var group: String?
        var supplementary: [String]
    }

    private let databases: [String]
    private let now: () -> Duration
    private let ask: (AppManifest) throws -> AppUser?
    private var known: [Key: (user: AppUser, asked: Duration)] = [:]
    private var stamps: [Stamp] = []

    init(
        databases: [String] = UserCache.databases, now: @escaping () -> Duration,
        ask: @escaping (AppManifest) throws -> AppUser? = { try AppUser($0) }
    ) {
        self.databases = databases
        self.now = now
        self.ask = ask
    }

    /// `nil`: as the daemon does.
    /// - Throws: as `AppUser` does.
    func user(of manifest: AppManifest) throws -> AppUser? {
        let key = Key(user: manifest.user, group: manifest.group, supplementary: manifest.supplementaryGroups)
        if key == Key(supplementary: []) { return nil }
        // Before it is asked: what changes meanwhile is asked for again.
        let stamps = databases.map(Stamp.init)
        if stamps != self.stamps { forget() }
        self.stamps = stamps
        if let (user, asked) = known[key], now() - asked < Self.lifetime { return user }
        known[key] = nil
        guard let user = try ask(manifest) else { return nil }
        known[key] = (user, now())
        return user
    }

    func forget() { known = [:] }
}

/// Tells a file from what it was before; one that is not there has a stamp too.
private struct Stamp: Equatable {
    var device: UInt64 = 0
    var inode: UInt64 = 0
    var size: Int64 = 0
    var seconds: Int64 = 0
    var nanoseconds: Int64 = 0

    init(_ path: String) {
        var about = Glibc.stat()
        guard stat(path, &about) == 0 else { return }
        device = UInt64(about.st_dev)
        inode = UInt64(about.st_ino)
        size = Int64(about.st_size)
        seconds = Int64(about.st_mtim.tv_sec)
        nanoseconds = Int64(about.st_mtim.tv_nsec)
    }
}
