import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd

/// What the daemon needs before it can serve apps: folders, the lock, stores and the core.
extension Startup {
    /// Creates the folders and acquires the lock that keeps a second daemon out of them.
    /// - Throws: a `Problem` that says what to do.
    static func prepare(_ folders: Folders, _ descriptors: RecoveredDescriptors) throws -> LockFile {
        if let reason = reasonToDistrust(folders.runtime) {
            throw Problem("the runtime folder \(folders.runtime) is not safe: \(reason); choose another with --runtime")
        }
        do {
            try createDirectories(at: folders.runtime)
        } catch {
            throw Problem("the runtime folder cannot be created: \(error)")
        }
        try createSubfolders(folders)
        if let lock = descriptors.take(RecoveredDescriptors.lock) {
            return LockFile(adopting: lock, path: folders.lock)
        }
        return try acquireLock(folders)
    }

    static func createSubfolders(_ folders: Folders) throws {
        try createDirectories(at: folders.notifySockets, mode: 0o711)
        try createDirectories(at: folders.inboxes, mode: 0o711)
        try createDirectories(at: folders.connections, mode: 0o711)
        try createDirectories(at: folders.lastReceipts, mode: 0o711)
    }

    /// How long the daemon waits for a lock whose owner has ended. If a killed daemon could not use its launcher, a
    /// process that it was starting has a copy of all its descriptors until it executes its program.
    private static let lockTimeout = Duration.seconds(2)

    /// Acquires the lock of the apps' groups. Another daemon may have it although it has no lock in the runtime folder, because
    /// that folder was removed.
    static func lockGroups(_ containment: Containment, _ descriptors: RecoveredDescriptors) throws -> GroupLock? {
        if let lock = descriptors.take(RecoveredDescriptors.groupLock) { return GroupLock(adopting: lock) }
        let limit = EventLoop.now() + lockTimeout
        while true {
            switch try GroupLock.acquire(containment.mode) {
            case .acquired(let lock): return lock
            case .held(let pid, let path):
                guard try !isAlive(pid) else {
                    throw Problem(
                        "another greenroomd (pid \(pid ?? 0)) contains its apps in \(path), although the runtime folder has no "
                            + "lock of it; stop it, or choose another runtime folder with --runtime")
                }
                if EventLoop.now() >= limit { return nil }
                poll(nil, 0, 2)
            }
        }
    }

    private static func isAlive(_ pid: Int32?) throws -> Bool {
        try pid.flatMap { try ProcFS().stat(of: $0) }.map { !$0.isZombie } ?? false
    }

    static func acquireLock(_ folders: Folders) throws -> LockFile {
        let limit = EventLoop.now() + lockTimeout
        while true {
            switch try LockFile.acquire(at: folders.lock) {
            case .acquired(let lock):
                // Another process may have removed the file after this one opened it.
                if lock.isInPlace { return lock }
            case .held(let pid):
                guard try !isAlive(pid) else {
                    let owner = pid.map { " (pid \($0))" } ?? ""
                    throw Problem(
                        "another greenroomd\(owner) is running on \(folders.runtime); choose another with --runtime"
                    )
                }
                // No daemon holds the lock. A new file is a new lock.
                if EventLoop.now() >= limit { _ = try removeFile(at: folders.lock) }
                poll(nil, 0, 2)
            }
        }
    }

    static func openStores(_ folders: Folders) throws -> (ReceiptStore, LaunchStore) {
        do {
            return (try ReceiptStore(folders: folders, clock: WallClock()), try LaunchStore(folders: folders))
        } catch {
            throw Problem(
                "the state folder \(folders.state) cannot be used: \(error); choose another with --state")
        }
    }

    /// The core, recovered or new. Apps that it does not contain are terminated first.
    static func core(
        _ recovered: inout RecoveredState?, _ orphans: OrphanedApps, _ receipts: ReceiptStore, _ loop: EventLoop
    ) -> LifecycleCore {
        // Greater than every number that a previous daemon used: a launch takes more than one microsecond.
        let firstRun = UInt64(loop.now().microseconds)
        guard var core = recovered?.core else {
            orphans.end()
            return LifecycleCore(firstRun: firstRun, firstReceipt: receipts.nextID)
        }
        let lacksEvents = recovered?.lacksEvents ?? false
        if lacksEvents { orphans.end(except: Set(core.runIDs)) }
        // If the receipts file has a larger number, another process wrote to it.
        if lacksEvents || core.nextReceiptID < receipts.nextID {
            core.skipNumbers(beforeRun: firstRun, beforeReceipt: receipts.nextID)
            recovered?.core = core
            // The events of the file do not lead to this core.
            recovered?.position = nil
        }
        return core
    }

    /// The name of the group that contains all apps' groups. A daemon with another runtime folder has another.
    static func groupName(_ folders: Folders) -> String {
        if folders.runtime == "/run/greenroom" { return "greenroom" }
        // FNV-1a: the same folder always has the same name.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in folders.runtime.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return "greenroom-" + String(hash, radix: 16)
    }
}
