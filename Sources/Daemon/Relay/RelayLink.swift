import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// The relay of a run (L54): it has started the command, passes its exit status on, and has its terminal. When it is gone, so is the
/// caller, and the command is ended.
final class RelayLink {
    let record: RelayRecord
    /// As the relay has reported it; `nil`: the command has not ended, as far as is known.
    private(set) var exitStatus: ExitStatus?
    private unowned let run: RunController
    /// `nil`: the relay has not found this daemon yet.
    private var connection: Relay?
    /// While there is no connection: the end of the relay's process.
    private var process: Linux.Process?
    private var processSource: EventSource?
    private var grace: Systemd.Timer?
    private var isGone = false
    /// A request that the relay has passed to the command has no answer yet (`--protocol=`).
    private(set) var isBusy = false
    /// The relay starts the command again if the daemon ends it while it sleeps (`--protocol=mcp`).
    private var canReturn = false
    /// The relay ends the command when it is suspended.
    private var endsAsleep = false
    /// Before its report the relay may have to take what the command leaves behind out of the group (`--keep-children`).
    var isToReport: Bool { isConnected && exitStatus == nil }
    private var receipt: Receipt?
    /// Whether the command is in the group.
    private(set) var isAttached: Bool
    /// A thaw that waits until the relay has returned the terminal.
    private var thaw: (body: () -> Void, timer: Systemd.Timer?)?
    private var context: DaemonContext { run.context }
    var isConnected: Bool { connection != nil }

    /// How long a command may react to the end of its input before it is terminated.
    private static let endOfInput = Duration.milliseconds(200)
    /// How long a relay has to return the terminal. Then it is looked at so often: one that is stopped never does, and one that has no processor
    /// does later.
    private static let terminalTime = Duration.milliseconds(100)
    /// The core ends a run that is not thawed in 5s.
    private static let longestTerminalTime = Duration.seconds(4)

    /// - Parameter connection: `nil`: the previous daemon had it.
    init(_ record: RelayRecord, _ connection: Relay?, of run: RunController) {
        self.record = record
        self.run = run
        isAttached = connection == nil
        if let connection { connect(connection, answer: nil) }
    }

    deinit { processSource = nil }

    // MARK: The connection

    /// The relay has found this daemon.
    func connect(_ relay: Relay) { connect(relay, answer: "M\(run.id)") }

    private func connect(_ relay: Relay, answer: String?) {
        connection?.close()
        connection = relay
        (processSource, process) = (nil, nil)
        relay.begin { [weak self] in self?.received($0) }
        if let answer { relay.send(answer) }
    }

    /// Reads what the relay has sent.
    func drain() { while connection?.read() ?? false {} }

    private func received(_ message: [UInt8]?) {
        guard let message else { return gone() }
        let text = String(decoding: message.prefix { $0 != 0 }, as: UTF8.self)
        switch text.first {
        case "P": if !isAttached { attach() }
        // How the command ended, as wait(2) encodes it.
        case "X": if let status = Int32(text.dropFirst()) { exitStatus = ExitStatus(EndStatus(waitStatus: status)) }
        case "W": wake()
        case "B":
            isBusy = true
            // It was suspended while its relay had no processor.
            wake()
        case "I": isBusy = false
        case "L": canReturn = true
        case "A": endsAsleep = true
        case "t": returned()
        default: break
        }
    }

    private func attach() {
        guard let connection else { return }
        isAttached = true
        do {
            try run.attach(connection)
        } catch {
            abandon("\(error)")
        }
    }

    /// The command is not executed, or not in its group: nothing of it is left to be killed.
    func abandon(_ sentence: String) {
        connection?.close()
        connection = nil
        let run = run
        run.abandonStart()
        run.send(.process(.spawnFailed(SpawnProblem(sentence: sentence, exitStatus: RunLauncher.Stage.cgroup))))
    }

    // MARK: The end of the relay

    /// The recovery is over. The relay has thawed the command when the previous daemon died, so it counts as awake.
    func recovered() {
        wake()
        guard connection == nil else { return }
        guard let process = (try? Linux.Process.open(record.pid)) ?? nil,
            (try? ProcFS().stat(of: record.pid))?.startTime == record.startTime
        else { return gone() }
        self.process = process
        processSource = try? context.loop.addDescriptor(process.descriptor, events: .readable, kind: .processEnd) {
            [weak self] _ in
            self?.gone()
            return .progress
        }
    }

    /// The relay has ended, or its connection. The command has the end of its input, and a moment to react to it.
    private func gone() {
        if !isAttached { return abandon("its caller has ended") }
        (processSource, process) = (nil, nil)
        connection?.close()
        connection = nil
        returned()
        guard !isGone, exitStatus == nil, run.process != nil else { return }
        isGone = true
        run.logInfo("the caller of 'greenroomctl run' is gone: the command is terminated")
        let (app, id) = (run.app, run.id)
        grace = try? context.loop.makeTimer(kind: .timer) { [weak context] _ in
            // It may have ended by itself.
            guard let context, context.runs[id]?.process != nil else { return }
            context.relays?.terminate(app)
        }
        grace?.arm(at: context.loop.now() + Self.endOfInput)
        wake()
    }

    /// A signal, or the end of the caller, is input as any other.
    private func wake() {
        guard let attempt = run.reportedAttempt else { return }
        let input = Input(kind: .pipe, pid: run.mainPID ?? 0, descriptor: 0, bytes: 0, peer: "greenroomctl run")
        run.send(.traffic(.inputArrived(attempt: attempt, input)))
    }

    // MARK: The terminal

    /// The command is frozen: from now on the relay receives the signals of the terminal.
    func frozen() { if record.hasTerminal || endsAsleep { connection?.send("F") } }

    /// Calls `body` once the command's group is the foreground group of the terminal again: otherwise a read of the terminal would stop it, or
    /// fail, which a shell takes for the end of its input.
    func returnTerminal(_ body: @escaping () -> Void) {
        returned()
        guard record.hasTerminal, let connection, connection.send("T") else { return body() }
        let end = context.loop.now() + Self.longestTerminalTime
        let timer = try? context.loop.makeTimer(kind: .appTimer) { [weak self] _ in self?.checkTerminal(until: end) }
        guard let timer else { return body() }
        timer.arm(at: context.loop.now() + Self.terminalTime)
        thaw = (body, timer)
    }

    private func checkTerminal(until end: Duration) {
        let now = context.loop.now()
        let relay = (try? ProcFS().stat(of: record.pid)) ?? nil
        guard let relay, !relay.isStopped, now < end else { return returned() }
        thaw?.timer?.arm(at: now + Self.terminalTime)
    }

    private func returned() {
        guard let (body, _) = thaw else { return }
        thaw = nil
        body()
    }

    /// The command is killed instead.
    func dropThaw() { thaw = nil }

    // MARK: The end of the command

    /// The receipt of the run is written, which may be before or after its group is empty.
    func recorded(_ receipt: Receipt) { self.receipt = receipt }

    /// Nothing is left of the command. Its relay learns from the receipt whether to start it again.
    func ended() {
        guard canReturn, let connection else { return }
        connection.begin { _ in }
        if let receipt { return connection.end(after: receipt) }
        context.relays?.awaitReceipt(of: run.id, connection)
    }
}
