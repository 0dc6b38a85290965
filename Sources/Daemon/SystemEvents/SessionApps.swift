import Control
import Glibc
import LifecycleCore
import Manifest
import Posix
import Systemd

/// Apps of which a program in the session of their user, such as greenroom-session, reports something. A user reports it of this
/// user's apps, and root of any.
final class SessionApps {
    /// The setting that asks for it, such as `WakeOnLocation=`.
    private let setting: String
    private var manifests: [AppID: AppManifest] = [:]
    /// The user that the app of a manifest runs as.
    var user: (AppManifest) throws -> UInt32 = { _ in geteuid() }

    init(_ setting: String) { self.setting = setting }

    func set(_ manifest: AppManifest) { manifests[manifest.id] = manifest }

    /// - Returns: whether it was there.
    @discardableResult func remove(_ app: AppID) -> Bool { manifests.removeValue(forKey: app) != nil }

    func contains(_ app: AppID) -> Bool { manifests[app] != nil }

    /// The apps, for a property: of each its ID, its user by name or number, and what else is in the signature. Users are not
    /// looked up: that can block.
    func list(_ signature: String, _ fields: (AppManifest) -> [Variant]) -> Variant {
        .array(
            signature,
            manifests.values.sorted { $0.id < $1.id }.map { manifest in
                .structure([.string(manifest.id.name), .string(manifest.user ?? String(geteuid()))] + fields(manifest))
            })
    }

    /// Whether a user may report something of an app, and see what was.
    func isAllowed(_ user: UInt32, _ app: AppID) -> Bool {
        guard let manifest = manifests[app] else { return false }
        return user == 0 || (try? self.user(manifest)) == user
    }

    /// Finds the app that the first argument names, if the caller may report something of it. Otherwise the call fails.
    func find(_ call: MethodCall, _ found: @escaping (AppID) -> Void) {
        call.identify { [weak self] result in
            switch result {
            case .success(let caller): self?.find(call, caller.uid, found)
            case .failure(let error): call.fail(error)
            }
        }
    }

    private func find(_ call: MethodCall, _ caller: UInt32, _ found: (AppID) -> Void) {
        // The same answer for an app of another user, and for none of that name.
        guard let app = AppID(call.text(0)), isAllowed(caller, app) else {
            return call.fail(
                ControlNames.Failure.invalidArgument.error(
                    "No app '\(call.text(0).printable(upTo: 80))' of uid \(caller) has \(setting)."))
        }
        found(app)
    }
}
