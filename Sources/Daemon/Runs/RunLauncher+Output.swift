import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// Where the output of apps goes. No two apps share an open file description, and none shares the daemon's: flags such as O_NONBLOCK
/// and the offset belong to the description, so one program would change them for all.
extension RunLauncher {
    func setOutput(of request: inout SpawnRequest, _ manifest: AppManifest) {
        let output = manifest.standardOutput
        switch output {
        case .journal: request.standardOutput = journalStream(manifest.id) ?? inherited(manifest.id)
        case .inherit: request.standardOutput = inherited(manifest.id)
        case .null: break
        case .file(let path): request.outputFile = OutputFile(path, appends: false)
        case .append(let path): request.outputFile = OutputFile(path, appends: true)
        }
        switch manifest.standardError {
        case .inherit: request.errorIsOutput = true
        // Two descriptions of one file would overwrite each other, and lines of two streams have no order.
        case output: request.errorIsOutput = true
        case .journal: request.standardError = journalStream(manifest.id) ?? inherited(manifest.id)
        case .null: break
        case .file(let path): request.errorFile = OutputFile(path, appends: false)
        case .append(let path): request.errorFile = OutputFile(path, appends: true)
        }
    }

    /// A connection to journald, with the app's ID; `nil` without the journal.
    private func journalStream(_ app: AppID) -> SharedDescriptor? {
        guard context.journal.usesJournald else { return nil }
        do {
            guard let stream = try JournalStream.open(identifier: app.name) else { return nil }
            return SharedDescriptor(stream)
        } catch {
            context.journal.logWarning("its output does not reach the journal: \(error)", app: app)
            return nil
        }
    }

    /// The daemon's standard error, opened again, so that output reaches it without the daemon; a file of the app if that is
    /// impossible (a socket, a terminal of another user). `nil`: to /dev/null.
    private func inherited(_ app: AppID) -> SharedDescriptor? {
        do throws(SystemError) {
            // A pipe without a reader fails with ENXIO instead of blocking.
            let flags = O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK
            let own = try Descriptor.open("/proc/self/fd/2", flags)
            try own.setNonBlocking(false)
            return SharedDescriptor(own)
        } catch {
            return ownFile(app, because: error)
        }
    }

    /// What a file of an app may have, in bytes, when the app is launched: the file is renamed then, and replaces an older one.
    private static let mostOutput: Int64 = 1 << 20

    private func ownFile(_ app: AppID, because reason: SystemError) -> SharedDescriptor? {
        let path = "\(context.folders.output)/\(app.name)"
        do {
            try createDirectories(at: context.folders.output, mode: 0o700)
            var about = Glibc.stat()
            if stat(path, &about) == 0, about.st_size > Self.mostOutput { rename(path, path + ".1") }
            let file = try Descriptor.open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_NOFOLLOW, mode: 0o600)
            context.journal.logWarning("its output goes to \(path): \(reason)", app: app)
            return SharedDescriptor(file)
        } catch {
            context.journal.logWarning("its output is dropped: \(error)", app: app)
            return nil
        }
    }
}
