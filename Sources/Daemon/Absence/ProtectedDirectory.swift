import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Manifest
import Posix
import Systemd

/// The directory that `ProtectedDirectory=` names (L15): its fscrypt key is removed when the screen is locked and all apps have entered the
/// background, and added before they are notified that the screen is unlocked.
///
/// All locks reach the core through it. A process of its own handles the key (`DirectoryKey`), one at a time; the daemon never has it.
final class ProtectedDirectory {
    /// For so long a process may take. A command may have to wait for a security chip or a server.
    private static let timeout = Duration.seconds(30)
    /// The most bytes of its output.
    private static let longestOutput = 4096

    private enum Key { case unknown, present, removed }

    private final class Helper {
        let verb: DirectoryKey.Verb
        var starting: StartingProcess
        let process: Linux.Process
        let output: SharedDescriptor
        var source: EventSource?

        init(_ verb: DirectoryKey.Verb, _ starting: consuming StartingProcess, _ output: SharedDescriptor) {
            self.verb = verb
            process = starting.process
            self.starting = starting
            self.output = output
        }
    }

    private let loop: EventLoop
    private let runs: RunTable
    private let containment: Containment
    private let journal: Journal
    private let driver: CoreDriver
    private var directory: String?
    private var command: [String] = []
    private var key = Key.unknown
    private var helper: Helper?
    private var timer: Systemd.Timer?
    /// The directory was not checked since it was configured.
    private var isCheckDue = false
    /// The key is to be removed as soon as the apps have entered the background.
    private var isLockDue = false
    /// The core is notified of it when the key was added.
    private var isUnlockPending = false
    /// The machine waits to sleep.
    private var sleep: (() -> Void)?

    init(loop: EventLoop, runs: RunTable, containment: Containment, journal: Journal, driver: CoreDriver) {
        (self.loop, self.runs, self.containment, self.journal, self.driver) = (loop, runs, containment, journal, driver)
    }

    /// The configuration was read.
    func configure(_ configuration: ManagerConfiguration) {
        command = configuration.protectedKeyCommand
        guard directory != configuration.protectedDirectory else { return }
        directory = configuration.protectedDirectory
        key = .unknown
        isCheckDue = directory != nil
        isLockDue = driver.core.isLocked
        next()
    }

    // MARK: The screen

    func locked() {
        isUnlockPending = false
        isLockDue = true
        driver.send(.absence(.locked))
        next()
    }

    func unlocked() {
        guard directory != nil, driver.core.isLocked else { return driver.send(.absence(.unlocked)) }
        isUnlockPending = true
        next()
    }

    /// The state of an app has changed.
    func changed() { if isLockDue { next() } }

    /// Calls `sleep` when a key that is to be removed was removed. logind limits how long the machine waits.
    func beforeSleep(_ sleep: @escaping () -> Void) {
        self.sleep = sleep
        next()
    }

    private func next() {
        guard helper == nil else { return }
        if isUnlockPending {
            if directory != nil, key != .present { return start(.unlock) }
            isUnlockPending = false
            isLockDue = false
            driver.send(.absence(.unlocked))
        }
        if directory != nil {
            if isLockDue, driver.core.isLockSettled {
                isLockDue = false
                return start(.lock)
            }
            if isCheckDue {
                isCheckDue = false
                return start(.check)
            }
        }
        let sleep = self.sleep
        self.sleep = nil
        sleep?()
    }

    // MARK: The process

    private func start(_ verb: DirectoryKey.Verb) {
        guard let directory else { return }
        do {
            if timer == nil {
                timer = try loop.makeTimer(kind: .machineTimer) { [weak self] _ in self?.elapsed() }
            }
            let output = SharedDescriptor(try MemoryFile.empty(DirectoryKey.program))
            var request = DirectoryKey.request(verb, directory, command)
            request.standardOutput = output
            let helper = Helper(verb, try startProcess(request), output)
            self.helper = helper
            runs.insertHook(helper.process.pid)
            helper.source = try loop.addDescriptor(
                helper.process.descriptor, events: .readable, kind: .processEnd
            ) { [weak self] _ in TurnResult(self?.ended() ?? true) }
            timer?.arm(at: loop.now() + Self.timeout)
            journal.log(.debug, "ProtectedDirectory=: \(directory): \(verb.rawValue) begins")
        } catch {
            finish("\(error)", isSuccess: false, verb)
        }
    }

    private func ended() -> Bool {
        guard let helper else { return true }
        guard helper.process.isOver else { return false }
        var problem: String?
        if case .failed(let failure)? = try? helper.starting.outcome() { problem = failure.sentence }
        let status = ((try? helper.process.reap()) ?? nil)?.status
        let output = problem ?? read(helper.output)
        finish(output, isSuccess: problem == nil && status == .exited(0), helper.verb)
        return true
    }

    private func elapsed() {
        guard let helper else { return }
        _ = try? helper.process.signal(SIGKILL)
        finish("it has not ended after \(Self.timeout.timeSpan), and was killed", isSuccess: false, helper.verb)
    }

    private func read(_ descriptor: SharedDescriptor) -> String {
        var buffer = [UInt8](repeating: 0, count: Self.longestOutput)
        let count = retryInterrupted { pread(descriptor.raw, &buffer, buffer.count, 0) }
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }

    private func finish(_ output: String, isSuccess: Bool, _ verb: DirectoryKey.Verb) {
        timer?.arm(at: nil)
        if let helper {
            runs.removeHook(helper.process.pid)
            runs.reapOrphans()
        }
        helper = nil
        let lines = output.split(separator: "\n").map { String($0).printable(upTo: 200) }
        let name = directory ?? ""
        switch verb {
        case .check: break
        case .lock: key = isSuccess ? .removed : .unknown
        case .unlock: key = isSuccess ? .present : .unknown
        }
        if !isSuccess {
            let what = ["check": "be protected", "lock": "be locked", "unlock": "be unlocked"][verb.rawValue] ?? ""
            journal.logWarning(
                "ProtectedDirectory=: \(name) cannot \(what): \(lines.first ?? "the process has crashed")")
        } else if verb != .check, lines.isEmpty {
            journal.log(.info, "ProtectedDirectory=: \(name) \(verb.rawValue)ed")
        } else if verb == .lock {
            let open = lines.compactMap(busy).joined(separator: ", ")
            journal.logWarning(
                "ProtectedDirectory=: files in \(name) are still open, and can be read while the screen is locked"
                    + (open.isEmpty ? "" : ": \(open)"))
        }
        if verb == .unlock, !isSuccess, isUnlockPending {
            // The user is here, and the apps have to come back.
            isUnlockPending = false
            isLockDue = false
            driver.send(.absence(.unlocked))
        }
        next()
    }

    /// `editor (pid 123, app mail)` of `busy 123 editor`.
    private func busy(_ line: String) -> String? {
        let words = line.split(separator: " ", maxSplits: 2)
        guard words.count == 3, let pid = Int32(words[1]) else { return nil }
        guard case .app(let app)? = try? containment.owner(of: pid) else { return "\(words[2]) (pid \(pid))" }
        return "\(words[2]) (pid \(pid), app \(app))"
    }
}
