import Control
import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// Where the output of apps goes. No two apps share an open file description, and none shares the daemon's: flags such as O_NONBLOCK
/// and the offset belong to the description, so one program would change them for all.
extension RunLauncher {
    /// - Parameters:
    ///   - run: the new run of the app.
    ///   - reason: of its launch; `nil`: the process is none of the app's program, and adds to the output of the run.
    ///   - owner: the user that the app runs as; `nil`: the daemon's.
    func setOutput(
        of request: inout SpawnRequest, _ manifest: AppManifest, _ run: RunID, _ reason: LaunchReason?, _ owner: Owner?
    ) {
        let app = manifest.id
        func journalOrFile() -> SharedDescriptor? { journalStream(app) ?? ownFile(app, run, reason, owner) }
        let output = manifest.standardOutput
        switch output {
        case .journal: request.standardOutput = journalOrFile()
        case .inherit: request.standardOutput = inherited(app, run, reason, owner)
        case .null: break
        case .file(let path): request.outputFile = OutputFile(path, appends: false)
        case .append(let path): request.outputFile = OutputFile(path, appends: true)
        }
        switch manifest.standardError {
        case .inherit: request.errorIsOutput = true
        // Two descriptions of one file would overwrite each other, and lines of two streams have no order.
        case output: request.errorIsOutput = true
        case .journal: request.standardError = journalOrFile()
        case .null: break
        case .file(let path): request.errorFile = OutputFile(path, appends: false)
        case .append(let path): request.errorFile = OutputFile(path, appends: true)
        }
    }

    /// A connection to journald, with the app's ID; `nil` if output does not go there.
    private func journalStream(_ app: AppID) -> SharedDescriptor? {
        guard context.storage.output.isInJournal else { return nil }
        do {
            guard let stream = try JournalStream.open(identifier: app.name) else { return nil }
            return SharedDescriptor(stream)
        } catch {
            context.journal.logWarning("its output does not reach the journal: \(error)", app: app)
            return nil
        }
    }

    /// The daemon's standard error, opened again, so that output reaches it without the daemon; the file of the app if that is
    /// impossible (a socket, a terminal of another user). `nil`: to /dev/null.
    private func inherited(_ app: AppID, _ run: RunID, _ reason: LaunchReason?, _ owner: Owner?) -> SharedDescriptor? {
        do throws(SystemError) {
            // A pipe without a reader fails with ENXIO instead of blocking.
            let flags = O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK
            let own = try Descriptor.open("/proc/self/fd/2", flags)
            try own.setNonBlocking(false)
            return SharedDescriptor(own)
        } catch {
            guard let file = ownFile(app, run, reason, owner) else { return nil }
            context.journal.logWarning("its output goes to \(context.storage.output.path(of: app)): \(error)", app: app)
            return file
        }
    }

    private func ownFile(_ app: AppID, _ run: RunID, _ reason: LaunchReason?, _ owner: Owner?) -> SharedDescriptor? {
        do {
            if let file = try context.storage.output.openAgain(for: run) { return SharedDescriptor(file) }
            let heading = reason.map { self.heading(app, $0) }
            return SharedDescriptor(try context.storage.output.open(for: run, of: app, owner: owner, heading))
        } catch {
            context.journal.logWarning("its output is dropped: \(error)", app: app)
            return nil
        }
    }

    /// The line before the output of a new run: `-- 2026-11-29 12:53:47: launched (push). Last end: Exited with status 3. (receipt 4) --`
    private func heading(_ app: AppID, _ reason: LaunchReason) -> String {
        let end = context.storage.receipts.last(of: app).map { " Last end: \($0.explanation) (receipt \($0.id))" } ?? ""
        return "-- \(Timestamp.now().local("%F %T")): launched (\(reason.rawValue)).\(end) --"
    }
}
