import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// Sets the weights of apps' sessions (sched(7), "The autogroup feature"). Without CAP_SYS_ADMIN the kernel accepts one change in
/// 100 ms, in the whole machine: the others wait, those of the foreground first.
final class AutogroupQueue {
    /// Sets the weight of a process's autogroup; false: not yet.
    typealias Write = (_ pid: Int32, _ nice: Int) throws -> Bool

    private struct Change {
        let number: UInt64
        let pid: Int32
        let nice: Int
    }

    private let loop: EventLoop
    private let journal: Journal
    private let write: Write
    private let proc = ProcFS()
    private var waiting: [Change] = []
    private var timer: Systemd.Timer?
    private var isFailureLogged = false

    /// A background app's: the least.
    static let backgroundNice = 19
    /// So many changes take 110 s. Of more the last one is not made, which is of the background if any is.
    private static let mostWaiting = 1000
    /// The kernel's interval, and a little: its clock has ticks of up to 10 ms.
    private static let interval = Duration.milliseconds(110)

    init(loop: EventLoop, journal: Journal, write: @escaping Write = { try ProcFS().setAutogroup(of: $0, nice: $1) }) {
        self.loop = loop
        self.journal = journal
        self.write = write
    }

    /// Lowers the weights of the app's own sessions, or restores what they were before.
    func setWeights(of run: RunController, background: Bool) throws {
        if !proc.hasAutogroups { return }
        for member in try run.enclosure.ownAutogroups() {
            let number = member.group.number
            let current = waiting.first { $0.number == number }?.nice ?? member.group.nice
            if background {
                if current != 0 { run.niceBefore[number] = current }
                set(number, of: member.pid, to: Self.backgroundNice)
            } else {
                // Unknown if it was 0, the kernel's default, after a restart of the daemon, and for a session that began in the
                // background.
                set(
                    number, of: member.pid, to: run.niceBefore[number] ?? (current == Self.backgroundNice ? 0 : current)
                )
            }
        }
        if !background { run.niceBefore = [:] }
    }

    /// Sets the weight of an autogroup as soon as the kernel accepts it. The last value counts.
    func set(_ number: UInt64, of pid: Int32, to nice: Int) {
        waiting.removeAll { $0.number == number }
        let change = Change(number: number, pid: pid, nice: nice)
        if nice < Self.backgroundNice {
            let position = waiting.firstIndex { $0.nice == Self.backgroundNice } ?? waiting.endIndex
            waiting.insert(change, at: position)
        } else {
            waiting.append(change)
        }
        if waiting.count > Self.mostWaiting { waiting.removeLast() }
        if timer?.isArmed != true { advance() }
    }

    /// Writes until the kernel accepts no more.
    private func advance() {
        while let change = waiting.first {
            do {
                guard try write(change.pid, change.nice) else { break }
            } catch {
                if !isFailureLogged { journal.logWarning("the weight of a session cannot be set: \(error)") }
                isFailureLogged = true
            }
            waiting.removeFirst()
        }
        if waiting.isEmpty { return }
        if timer == nil { timer = try? loop.makeTimer(kind: .timer) { [weak self] _ in self?.advance() } }
        timer?.arm(at: loop.now() + Self.interval)
    }
}
