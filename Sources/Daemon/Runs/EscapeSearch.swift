import Linux
import Systemd

/// Searches /proc for runs whose processes may have left their cgroup. One search serves all runs that wait when it begins;
/// a run that comes later waits for the next one, because this one may have passed its processes already. So any number of
/// runs that freeze or end together costs two searches at most, and some searches of few processes.
final class EscapeSearch {
    private let loop: EventLoop
    private let containment: Containment
    private var waiting: [(ProcessScan?) -> Void] = []
    /// Those that waited when this search began.
    private var joined: [(ProcessScan?) -> Void] = []
    private var served: ArraySlice<(ProcessScan?) -> Void> = []
    private var scan: ProcessScan?
    private var isScanned = false
    private var isRunning = false
    /// How many searches were made.
    private(set) var count = 0
    /// How many searches of few processes are under way. Of many runs that freeze together each would read the same new
    /// processes and keep what it found, so the others share a search of all.
    private var searchesOfFew = 0
    private static let mostSearchesOfFew = 2

    init(loop: EventLoop, containment: Containment) {
        self.loop = loop
        self.containment = containment
    }

    /// Searches for processes of one run. Where they cannot be elsewhere, only those are searched that are new since the last
    /// search: a worker that is suspended once a second costs less than all processes of the machine.
    func search(for enclosure: Enclosure, _ completion: @escaping (ProcessScan?) -> Void) {
        search(few: { enclosure.beginSearch(in: containment) }, completion)
    }

    /// - Parameter begin: begins a search of the processes that can belong to the run; `nil`: that can be all.
    func search(few begin: () -> ProcessScan?, _ completion: @escaping (ProcessScan?) -> Void) {
        guard searchesOfFew < Self.mostSearchesOfFew, let scan = begin() else { return search(completion) }
        searchesOfFew += 1
        loop.work.add { [self] in
            let hasMore = try? scan.advance()
            if hasMore == true { return true }
            searchesOfFew -= 1
            completion(hasMore == nil ? nil : scan)
            return false
        }
    }

    /// - Parameter completion: called from the loop with a complete search; `nil`: /proc cannot be read.
    func search(_ completion: @escaping (ProcessScan?) -> Void) {
        waiting.append(completion)
        if isRunning { return }
        isRunning = true
        loop.work.add { [weak self] in self?.step() ?? false }
    }

    /// - Returns: whether there is more to do.
    private func step() -> Bool {
        if let completion = served.popFirst() {
            completion(scan)
        } else if scan == nil || isScanned {
            (scan, isScanned) = (nil, false)
            guard !waiting.isEmpty else {
                isRunning = false
                return false
            }
            begin()
        } else {
            advance()
        }
        return true
    }

    private func begin() {
        count += 1
        (joined, waiting) = (waiting, [])
        scan = containment.makeSearch()
    }

    private func advance() {
        do {
            isScanned = try scan?.advance() != true
        } catch {
            (scan, isScanned) = (nil, false)
        }
        guard isScanned || scan == nil else { return }
        served = joined[...]
        joined = []
    }
}
