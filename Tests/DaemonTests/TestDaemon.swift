import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// A real greenroomd with its own folders, and the calls that tests make. It ends with all its apps when it is dropped.
final class TestDaemon {
    let root: String
    let process: Linux.Process
    private(set) var bus: BusConnection
    private var isOver = false
    /// Whether another daemon uses the folders now.
    private var isSucceeded = false
    /// A service manager whose descriptor store survives the daemon; `nil`: there is none.
    let manager: FakeServiceManager?
    private let asUnprivilegedUser: Bool
    private let userRuntime: String?
    private let wrapper: [String]

    static let binaries = programFolder()
    static var app: String { binaries + "/greenroom-testapp" }

    var config: String { root + "/config" }
    var runtime: String { root + "/run" }
    var state: String { root + "/state" }

    /// - Parameters:
    ///   - apps: manifests' text by ID.
    ///   - configuration: `greenroom.conf`.
    ///   - root: the folders of a previous daemon.
    ///   - asUnprivilegedUser: run as the user `nobody`, which may not write any cgroup.
    ///   - manager: a service manager with a descriptor store.
    ///   - userRuntime: run as a user's daemon with this XDG_RUNTIME_DIR.
    ///   - wrapper: a program and its arguments, to which the command of the daemon is appended.
    init(
        _ apps: [String: String] = [:], configuration: String? = nil, root: String? = nil,
        asUnprivilegedUser: Bool = false,
        manager: FakeServiceManager? = nil, userRuntime: String? = nil, wrapper: [String] = []
    ) throws {
        self.manager = manager
        self.userRuntime = userRuntime
        self.wrapper = wrapper
        self.asUnprivilegedUser = asUnprivilegedUser
        self.root = try root ?? TestDaemon.makeFolder()
        let (root, config) = (self.root, self.root + "/config")
        try createDirectories(at: config + "/apps")
        for (id, text) in apps { try replaceFile(at: "\(config)/apps/\(id).app", with: Array(text.utf8)) }
        if let configuration { try replaceFile(at: config + "/greenroom.conf", with: Array(configuration.utf8)) }
        process = try TestDaemon.start(root, asUnprivilegedUser: asUnprivilegedUser, manager, userRuntime, wrapper)
        bus = try BusConnection(path: root + "/run/bus")
    }

    deinit {
        stop()
        if !isSucceeded { removeTree(root) }
    }

    /// Kills the daemon with SIGKILL. No daemon runs until `successor`.
    func crash() {
        _ = try? process.signal(SIGKILL)
        waitForReadable([process.descriptor])
        _ = try? process.reap()
        isOver = true
    }

    /// Connects again after `Reexec` on this connection, which closes it. The connections of others outlast it.
    func reconnect() throws {
        while (try? bus.nextSignal(until: EventLoop.now() + .seconds(60))) ?? nil != nil {}
        try eventually("the new program answers") {
            guard let bus = try? BusConnection(path: runtime + "/bus") else { return false }
            self.bus = bus
            return (try? call("Version")) != nil
        }
    }

    /// Connects again: the daemon ends the connection of a client that has not read its signals.
    func renewConnection() throws { bus = try BusConnection(path: runtime + "/bus") }

    /// Starts the next daemon, after this one was killed.
    func successor() throws -> TestDaemon { try successor(of: manager) }

    /// Starts the next daemon under another service manager, or without one (`nil`).
    func successor(of manager: FakeServiceManager?) throws -> TestDaemon {
        let next = try TestDaemon(
            root: root, asUnprivilegedUser: asUnprivilegedUser, manager: manager, userRuntime: userRuntime,
            wrapper: wrapper)
        isSucceeded = true
        return next
    }

    /// Starts greenroomd and waits until it is ready.
    /// - Throws: if it exits before.
    private static func start(
        _ root: String, asUnprivilegedUser: Bool, _ manager: FakeServiceManager?, _ userRuntime: String?,
        _ wrapper: [String]
    ) throws -> Linux.Process {
        let ready = try DatagramSocket(at: root + "/ready")
        let process = try begin(root, asUnprivilegedUser: asUnprivilegedUser, manager, userRuntime, wrapper)
        while true {
            waitForReadable([manager?.readyDescriptor ?? ready.descriptor, process.descriptor])
            if let manager, try !process.hasEnded() {
                manager.takeReady()
                return process
            }
            if let datagram = try ready.receive() {
                if String(decoding: datagram.bytes, as: UTF8.self).contains("READY=1") { return process }
            } else if try process.hasEnded() {
                throw TestFailure("greenroomd ended at once: \(text(of: root + "/log"))")
            }
        }
    }

    private static func begin(
        _ root: String, asUnprivilegedUser: Bool, _ manager: FakeServiceManager?, _ userRuntime: String?,
        _ wrapper: [String]
    ) throws -> Linux.Process {
        let log = SharedDescriptor(try Descriptor.open(root + "/log", O_WRONLY | O_CREAT | O_APPEND, mode: 0o600))
        // Instead of the machine's system bus, one that the test may start.
        var environment = [
            "PATH=/usr/bin:/bin", "HOME=/", "NOTIFY_SOCKET=\(manager?.path ?? root + "/ready")",
            "SWIFT_BACKTRACE=enable=no",
            "DBUS_SYSTEM_BUS_ADDRESS=\(PrivateBus.address(in: root))",
        ]
        if let userRuntime { environment.append("XDG_RUNTIME_DIR=\(userRuntime)") }
        if manager != nil { environment.append("FDSTORE=512") }
        var request = SpawnRequest(
            executable: binaries + "/greenroomd",
            arguments: daemonArguments(root) + (userRuntime == nil ? [] : ["--user"]), environment: environment,
            standardOutput: log, standardError: log)
        request.passedDescriptors = try manager?.passedDescriptors() ?? []
        if asUnprivilegedUser {
            // Other users may not be able to read the build folder.
            request.executable = root + "/greenroomd"
            try replaceFile(
                at: request.executable, with: readFile(at: binaries + "/greenroomd", limit: 1 << 28), mode: 0o755)
            request.credentials = Credentials(uid: unprivilegedUser, gid: unprivilegedUser, groups: [])
            for path in [root, root + "/ready"] { chown(path, unprivilegedUser, unprivilegedUser) }
        }
        if let program = wrapper.first {
            request.arguments = wrapper.dropFirst() + [request.executable] + request.arguments
            request.executable = program
        }
        return try execute(request)
    }

    /// Starts the next daemon and kills it after some time.
    func successor(killedAfter time: Duration) throws {
        let process = try TestDaemon.begin(
            root, asUnprivilegedUser: asUnprivilegedUser, manager, userRuntime, wrapper)
        let (seconds, attoseconds) = time.components
        var wait = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
        nanosleep(&wait, nil)
        _ = try process.signal(SIGKILL)
        waitForReadable([process.descriptor])
        _ = try process.reap()
    }

    /// Starts the next daemon and kills it once a condition holds.
    func successor(killedWhen isDue: () throws -> Bool) throws {
        let process = try TestDaemon.begin(
            root, asUnprivilegedUser: asUnprivilegedUser, manager, userRuntime, wrapper)
        defer {
            _ = try? process.signal(SIGKILL)
            waitForReadable([process.descriptor])
            _ = try? process.reap()
        }
        try eventually("the daemon is to be killed", isDue)
    }

    private static func execute(_ request: SpawnRequest) throws -> Linux.Process {
        while true {
            var starting = try startProcess(request)
            while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
            guard case .failed(let failure) = try starting.outcome() else { return starting.process }
            waitForReadable([starting.process.descriptor])
            _ = try starting.process.reap()
            // A process that another test forked while the copy was written has the descriptor open until it executes
            // its program.
            guard failure.errno == ETXTBSY else { throw TestFailure(failure.sentence) }
            poll(nil, 0, 1)
        }
    }

    private static let unprivilegedUser: UInt32 = 65_534

    static func daemonArguments(_ root: String) -> [String] {
        ["--config", root + "/config", "--runtime", root + "/run", "--state", root + "/state", "--log-level", "debug"]
    }

    static func makeFolder() throws -> String {
        let path = makeTemporaryFolder("greenroom-test")
        // Apps of other users need access.
        chmod(path, 0o755)
        return path
    }

    /// Waits until the daemon exits.
    func waitForEnd() -> EndStatus? {
        isOver = true
        waitForReadable([process.descriptor])
        return try? process.reap()?.status
    }

    /// Stops the daemon with SIGTERM.
    /// - Returns: how the daemon ended.
    @discardableResult
    func stop() -> EndStatus? {
        guard !isOver else { return nil }
        isOver = true
        _ = try? process.signal(SIGTERM)
        waitForReadable([process.descriptor])
        return try? process.reap()?.status
    }

    // MARK: Calls

    func call(_ member: String, _ arguments: [Variant] = []) throws -> [Variant] {
        try bus.call(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member, arguments,
            timeout: .seconds(60))
    }

    /// Calls a method that requests a transition.
    /// - Returns: `outcome`, `state`, `explanation`, `lastReceipt`.
    @discardableResult
    func ask(_ member: String, _ app: String, _ more: [Variant] = []) throws -> JSONValue {
        JSONValue(try call(member, [.string(app)] + more)[0])
    }

    @discardableResult
    func launch(_ app: String, background: Bool = false) throws -> JSONValue {
        try ask("Launch", app, [.dictionary(background ? [("background", .bool(true))] : [])])
    }

    @discardableResult
    func terminate(_ app: String, remove: Bool = false) throws -> JSONValue {
        try ask("Terminate", app, [.bool(remove)])
    }

    func status(_ app: String) throws -> JSONValue { JSONValue(try call("Status", [.string(app)])[0]) }
    func state(_ app: String) throws -> String { try status(app)["state"]?.stringValue ?? "" }

    /// The pid of the main process; 0 if there is none. An app is `launching` before its process is created.
    func pid(_ app: String) throws -> Int32 {
        var pid: Int32 = 0
        try eventually("\(app) has a process") {
            let status = try status(app)
            pid = Int32(status["pid"]?.integerValue ?? 0)
            return pid > 0 || status["state"]?.stringValue != "launching"
        }
        return pid
    }

    func receipts(_ app: String) throws -> [JSONValue] {
        JSONValue(try call("Receipts", [.string(app), .uint32(0)])[0]).arrayValue ?? []
    }

    /// The last part of the error's name; `nil`: the call succeeded.
    func failure(_ member: String, _ arguments: [Variant]) -> String? {
        do {
            _ = try call(member, arguments)
            return nil
        } catch let error as BusError {
            return error.name.split(separator: ".").last.map(String.init)
        } catch {
            return "\(error)"
        }
    }

    // MARK: Waiting for lifecycle events

    /// Waits for a lifecycle event. Events before it are dropped.
    @discardableResult
    func waitForEvent(_ what: String, where isExpected: (JSONValue) -> Bool) throws -> JSONValue {
        let deadline = EventLoop.now() + .seconds(60)
        while let signal = try bus.nextSignal(until: deadline) {
            guard signal.member == ControlNames.lifecycleEventSignal, let first = signal.arguments.first else {
                continue
            }
            let record = JSONValue(first)
            if isExpected(record) { return record }
        }
        throw TestFailure("timeout: \(what); the log: \(TestDaemon.text(of: root + "/log").suffix(2000))")
    }

    @discardableResult
    func wait(_ app: String, _ kind: String, state: String? = nil) throws -> JSONValue {
        try waitForEvent("\(app): \(kind) \(state ?? "")") { record in
            record["app"]?.stringValue == app && record["kind"]?.stringValue == kind
                && (state == nil || record["state"]?.stringValue == state)
        }
    }

    /// Waits until the app is in a state. A signal may be old, so the state is read again after it.
    func waitUntil(_ app: String, is state: String) throws {
        while try self.state(app) != state { try wait(app, "stateChanged", state: state) }
    }

    /// Waits until an app is suspended and the daemon has duplicates of all its descriptors that can be watched (L50): that
    /// takes some turns of the loop after the state has changed.
    func waitUntilWatched(_ app: String) throws {
        try waitUntil(app, is: "suspended")
        try eventually("\(app) is watched") { try status(app)["watch"] != nil }
    }

    // MARK: Reading

    static func text(of path: String) -> String {
        (try? readFile(at: path, limit: 1 << 22)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    func trace(_ name: String = "trace") -> [String] {
        TestDaemon.text(of: root + "/" + name).split(separator: "\n").map(String.init)
    }

    /// The daemon's open files, without inode numbers.
    func openDescriptors() -> [String] {
        entries(of: "/proc/\(process.pid)/fd").compactMap { number in
            let link = "/proc/\(process.pid)/fd/\(number)"
            var target = [CChar](repeating: 0, count: 4096)
            guard readlink(link, &target, 4095) > 0 else { return nil }
            return String(decoding: target.prefix { $0 != 0 && $0 != 91 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }.sorted()
    }

    /// What the daemon has open while no size is being read. The exact size of a suspended app is read on the helper thread, from
    /// the folder /proc/PID of each of its processes.
    func settledDescriptors() throws -> [String] {
        var found: [String] = []
        try eventually("no size is read") {
            found = openDescriptors()
            return !found.contains { $0.hasPrefix("/proc/") && $0.dropFirst(6).allSatisfy(\.isNumber) }
        }
        return found
    }

    /// Waits until the daemon has nothing open that it had not before.
    func waitUntilNothingOpen(beyond before: [String], sourceLocation: SourceLocation = #_sourceLocation) {
        var more: [String] = []
        do {
            try eventually("no further descriptor is open") {
                more = openDescriptors()
                for file in before { more.firstIndex(of: file).map { _ = more.remove(at: $0) } }
                return more.isEmpty
            }
        } catch {
            Issue.record("these stay open: \(more)", sourceLocation: sourceLocation)
        }
    }

    /// A manifest that runs the scripted app. The app sends READY=1 after it has executed the script, when its signal
    /// handlers are installed. With `hangs` it never does.
    static func manifest(
        _ script: String, app more: String = "", _ sections: String = "", trace: String? = nil, hangs: Bool = false
    ) -> String {
        """
        [App]
        Type=notify
        ExecStart=\(app) \(script)\(hangs ? "" : " ready")
        \(trace.map { "Environment=TRACE=\($0)" } ?? "")
        \(more)
        [Signals]
        ResignActive=SIGRTMIN+3
        BecomeActive=SIGUSR2
        EnterBackground=SIGUSR1
        EnterForeground=SIGRTMIN+4
        MemoryWarning=SIGRTMIN+1
        TaskExpiring=SIGRTMIN+2
        \(sections)

        """
    }
}

struct TestFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Blocks until one of them is readable.
func waitForReadable(_ descriptors: [SharedDescriptor]) {
    var polled = descriptors.map { pollfd(fd: $0.raw, events: Int16(POLLIN), revents: 0) }
    while poll(&polled, nfds_t(polled.count), -1) < 0 && errno == EINTR {}
}
