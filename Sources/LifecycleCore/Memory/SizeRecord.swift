/// What is known of the size of a run, in bytes.
///
/// Without a memory controller the files of the processes in /proc show an estimate: pages that processes share after a fork are
/// counted for each. The exact size takes a walk of the page tables, so it is measured only where the difference matters (L39). It
/// is kept with the estimate of the same time, and later estimates are compared with that one.
package struct SizeRecord: Hashable, Sendable {
    package struct Exact: Hashable, Sendable {
        var bytes: UInt64
        /// The estimate of the same time.
        var estimate: UInt64
        /// When it was measured.
        var at: Instant
    }

    /// The last estimate.
    private(set) package var estimate: UInt64
    /// By how much the last estimate may be too large.
    private(set) var doubt: UInt64
    @Rare private(set) var exact: Exact? = nil

    package init(estimate: UInt64 = 0) { self.init(estimate: estimate, doubt: 0, exact: nil) }

    init(estimate: UInt64, doubt: UInt64, exact: Exact?) {
        self.estimate = estimate
        self.doubt = min(estimate, doubt)
        self.exact = exact
    }

    /// A size that is off by less than this is exact enough to choose a victim, in bytes: the walk of the page tables costs more
    /// than it shows.
    package static func tolerance(of bytes: UInt64) -> UInt64 { max(8 << 20, bytes / 10) }

    /// An estimate that is exact needs no other size.
    package mutating func setEstimate(_ bytes: UInt64, doubt: UInt64) {
        estimate = bytes
        self.doubt = min(bytes, doubt)
        if doubt == 0 { exact = nil }
    }

    /// Whether `setEstimate` would change nothing.
    func hasEstimate(_ bytes: UInt64, doubt: UInt64) -> Bool {
        estimate == bytes && self.doubt == min(bytes, doubt) && (doubt > 0 || !_exact.isPresent)
    }

    /// - Parameter estimate: of the same time; `nil`: the last one.
    package mutating func setExact(_ bytes: UInt64, estimate: UInt64? = nil, at now: Instant) {
        exact = Exact(bytes: bytes, estimate: estimate ?? self.estimate, at: now)
        doubt = max(doubt, self.estimate.excess(over: bytes))
    }

    /// The best that is known. What the estimate has grown by is added to the exact size, because new pages are not shared.
    package var bytes: UInt64 {
        guard let exact else { return estimate }
        let growth = estimate.excess(over: exact.estimate)
        return max(estimate - doubt, min(max(estimate, exact.bytes), exact.bytes.saturatingSum(growth)))
    }

    /// By how much `bytes` may be too large.
    package var uncertainty: UInt64 {
        guard let exact else { return doubt }
        let change = max(estimate, exact.estimate) - min(estimate, exact.estimate)
        return min(change, bytes - (estimate - doubt))
    }

    /// The app has at least as much.
    package var certain: UInt64 { bytes - uncertainty }

    /// Whether the size is too uncertain to choose a victim by it.
    package var isInDoubt: Bool { uncertainty > Self.tolerance(of: bytes) }

    /// Whether the exact size may have grown since without any change of the estimate: pages cease to be shared when they are
    /// written to.
    func isOutdated(_ now: Instant) -> Bool {
        guard let exact else { return false }
        return now - exact.at >= LifecycleCore.exactSizeTime && estimate.excess(over: bytes) > Self.tolerance(of: bytes)
    }
}
