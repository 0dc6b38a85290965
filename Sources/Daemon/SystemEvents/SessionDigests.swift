import Control
import Glibc
import LifecycleCore
import LoopPolicy
import Posix
import Systemd

/// States of users' sessions that the daemon does not see itself (L33): the settings of the desktop, of apps without `SettingsFile=`, and
/// the online accounts. A program in the session of a user, such as greenroom-session, reports a digest of one, as long as an app of
/// this user is notified of its kind.
final class SessionDigests {
    private static let longestDigest = 64

    private let loop: EventLoop
    /// Gets a digest, and the app that is notified of it.
    var send: (String, AppID) -> Void = { _, _ in }
    /// The user that an app runs as; `nil`: it has no process.
    var user: (AppID) -> UInt32? = { _ in nil }
    private var apps: Set<AppID> = []
    /// The last digest of each user that has such an app.
    private var digests: [UInt32: String] = [:]
    /// The users whose digests are not passed on yet.
    private var due: Set<UInt32> = []
    private var lastTime = Duration.zero - SystemEvents.interval
    private var timer: Systemd.Timer?

    init(_ loop: EventLoop) throws(SystemError) {
        self.loop = loop
        timer = try loop.makeTimer(kind: .timer) { [weak self] _ in self?.passOn() }
    }

    /// The users whose digests are to be reported.
    var users: [UInt32] { Set(apps.compactMap(user)).sorted() }

    /// Whether an app is to be notified has changed, or may have.
    func follow(_ app: AppID, isWanted: Bool) {
        if !isWanted {
            guard apps.remove(app) != nil else { return }
            let users = users
            for known in digests.keys where !users.contains(known) { digests[known] = nil }
        } else if apps.insert(app).inserted, let digest = user(app).flatMap({ digests[$0] }) {
            send(digest, app)
        }
    }

    // MARK: Reports

    func report(_ call: MethodCall) {
        let digest = call.text(0)
        let isValid =
            (1...Self.longestDigest).contains(digest.utf8.count)
            && digest.utf8.allSatisfy { UInt8(ascii: "!")...UInt8(ascii: "~") ~= $0 }
        guard isValid else {
            return call.fail(
                ControlNames.Failure.invalidArgument.error(
                    "Invalid digest '\(digest.printable(upTo: 80))'; expected 1 to \(Self.longestDigest) characters of ASCII without spaces."
                ))
        }
        call.identify { [weak self] result in
            switch result {
            case .success(let caller):
                self?.reported(digest, caller.uid)
                call.reply()
            case .failure(let error): call.fail(error)
            }
        }
    }

    /// A digest of which no app is notified is not kept.
    func reported(_ digest: String, _ user: UInt32) {
        guard digests[user] != digest, users.contains(user) else { return }
        digests[user] = digest
        due.insert(user)
        timer?.arm(at: max(loop.now(), lastTime + SystemEvents.interval))
    }

    private func passOn() {
        lastTime = loop.now()
        for app in apps.sorted() {
            guard let user = user(app), due.contains(user), let digest = digests[user] else { continue }
            send(digest, app)
        }
        due = []
    }
}
