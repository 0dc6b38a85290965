import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd
import Testing

@testable import Daemon

/// Collects events, instead of the core's driver.
final class EventList: EventSink {
    private(set) var events: [Event] = []
    /// Called with each event after it is collected.
    private let handle: (Event) -> Void

    init(_ handle: @escaping (Event) -> Void = { _ in }) { self.handle = handle }

    func send(_ event: Event) {
        events.append(event)
        handle(event)
    }
    func batch(_ body: () -> Void) { body() }
    func isEntering(_ run: RunID) -> Bool { false }
    func isLaunching(_ run: RunID) -> Bool { false }
    func isTaskOpen(_ name: String, of run: RunID) -> Bool { false }
    func view(of app: AppID) -> AppView? { nil }
    func timerState(of app: AppID) -> TimerState? { nil }
}

extension Journal {
    /// A journal that writes nothing below the level error.
    static var quiet: Journal { Journal(level: .error) }
}

extension DaemonContext {
    /// A context without a daemon, in process-group mode, whose logbook is not created. It makes the process the
    /// subreaper of its orphans.
    static func bare(in root: String, _ loop: EventLoop, _ events: EventList) throws -> DaemonContext {
        var folders = try #require(Folders(mode: .system) { _ in nil })
        folders.moveRuntime(to: root)
        folders.moveState(to: root)
        try createDirectories(at: folders.notifySockets)
        let journal = Journal.quiet
        return try DaemonContext(
            loop: loop, folders: folders,
            containment: try Containment(mode: .processGroup(reason: "a test"), name: "bare"), journal: journal,
            receipts: try ReceiptStore(folders: folders, clock: WallClock()),
            launches: try LaunchStore(folders: folders),
            logbook: Logbook(path: root + "/logbook", journal: journal), library: ManifestLibrary(folders: folders),
            store: DescriptorStore(environment: { _ in nil }, journal: journal), events: events)
    }

    /// A run of an app, without a process.
    func makeRun(_ id: RunID, of app: String) throws -> RunController {
        let run = RunController(
            id: id, manifest: SharedManifest(AppManifest(id: try #require(AppID(app)))),
            enclosure: try containment.create(app: app, run: id.number),
            socket: try NotifySocket(id, in: notifySockets, owner: nil),
            owner: nil, context: self)
        runs.insert(run)
        return run
    }
}

/// A process that sleeps until a signal ends it.
/// - Parameter input: its standard input.
func startSleep(input: SharedDescriptor? = nil) throws -> Linux.Process {
    var starting = try startProcess(
        SpawnRequest(executable: "/bin/sleep", arguments: ["1000"], standardInput: input))
    while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
    // After execve(2) it still has to load its libraries. The kernel reports its sleep in /proc alone.
    while let stat = try ProcFS().stat(of: starting.process.pid), stat.state != UInt8(ascii: "S") { sched_yield() }
    return starting.process
}
