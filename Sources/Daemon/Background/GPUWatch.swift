import LifecycleCore
import Linux
import LoopPolicy
import Systemd

/// Looks each second whether a run uses a GPU (L43, `BackgroundGPU=no`): the kernel does not report when that begins. It exists only while
/// such an app runs in the background.
final class GPUWatch {
    private static let interval = Duration.seconds(1)

    private unowned let run: RunController
    private let loop: EventLoop
    private let proc: ProcFS
    private var timer: Systemd.Timer?
    private var search: GPUSearch?
    /// What it had used at the last look.
    private var before: GPUUse?

    init(_ run: RunController, loop: EventLoop, proc: ProcFS) {
        self.run = run
        self.loop = loop
        self.proc = proc
        run.attempt { timer = try loop.makeTimer(kind: .appTimer) { [weak self] _ in self?.look() } }
        // What it has sent to a GPU before may still be under way.
        arm()
    }

    /// What cannot be read now is read by the next look: the kernel counts on.
    private func look() {
        search = try? run.enclosure.gpuSearch(in: proc)
        if search == nil { return arm() }
        loop.work.add { [weak self] in self?.advance() ?? false }
    }

    private func arm() { timer?.arm(at: loop.now() + Self.interval) }

    /// - Returns: whether there is more to read.
    private func advance() -> Bool {
        guard let search else { return false }
        do {
            if try search.advance() { return true }
            report(search.use)
        } catch {}
        self.search = nil
        arm()
        return false
    }

    private func report(_ use: GPUUse) {
        let grown = before.flatMap { use.growth(since: $0) }
        before = use
        if let grown { run.send(.processor(.gpuUsed(grown))) }
    }
}
