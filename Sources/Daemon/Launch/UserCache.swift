import Glibc
import Manifest

/// The users that apps run as. A lookup blocks the daemon's only thread and may use the network: getgrouplist(3) asks
/// every service of nsswitch.conf, also about a local user. So results are cached.
///
/// The cache is cleared at a reload and when a local database changes; an entry expires after ten minutes. A user that
/// was not found is not cached.
final class UserCache {
    /// The default of nscd(8): `positive-time-to-live passwd 600`.
    static let lifetime = Duration.seconds(600)
    static let databases = ["/etc/passwd", "/etc/group", "/etc/nsswitch.conf"]

    private struct Key: Hashable {
        var user: String?
        var group: String?
        var supplementary: [String]
    }

    private let databases: [String]
    private let now: () -> Duration
    private let lookUp: (AppManifest) throws -> AppUser?
    private var cache: [Key: (user: AppUser, at: Duration)] = [:]
    private var stamps: [Stamp] = []

    init(
        databases: [String] = UserCache.databases, now: @escaping () -> Duration,
        lookUp: @escaping (AppManifest) throws -> AppUser? = { try AppUser($0) }
    ) {
        self.databases = databases
        self.now = now
        self.lookUp = lookUp
    }

    /// The user of an app; `nil`: the daemon's.
    /// - Throws: see `AppUser`.
    func user(of manifest: AppManifest) throws -> AppUser? {
        let key = Key(user: manifest.user, group: manifest.group, supplementary: manifest.supplementaryGroups)
        if key == Key(supplementary: []) { return nil }
        // Read before the lookup, so that a database that changes meanwhile is read again.
        let stamps = databases.map(Stamp.init)
        if stamps != self.stamps { clear() }
        self.stamps = stamps
        if let (user, at) = cache[key], now() - at < Self.lifetime { return user }
        cache[key] = nil
        guard let user = try lookUp(manifest) else { return nil }
        cache[key] = (user, now())
        return user
    }

    /// Clears the cache.
    func clear() { cache = [:] }
}

/// Changes if a file changes, is created or is removed.
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
