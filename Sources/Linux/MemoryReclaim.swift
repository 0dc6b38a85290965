package import Posix

/// Pushes the memory of a frozen app out to swap (L37), in slices on a helper thread: by `memory.reclaim` of its cgroup (since
/// Linux 5.19), else process by process with process_madvise(2) (since 5.10; requires CAP_SYS_NICE).
///
/// One slice is under way at a time. Nothing more happens if the caller asks for no further one, so that it can stop at any time.
package final class MemoryReclaim {
    /// The kernel pushes out so much in about 10 ms to zram or an SSD. A call for very much can rescan for minutes what it cannot
    /// reclaim, and no signal to the daemon ends that in time.
    package static let slice: UInt64 = 4 << 20
    /// A slice that takes longer says that there is little left to reclaim, or that the swap is too slow for it.
    package static let longestSlice = Duration.seconds(1)
    /// So many slices in a row without effect are the end.
    private static let mostIdleSlices = 3
    /// Less than that is no effect of a slice.
    private static let smallestEffect = slice / 16

    private enum Target {
        case group(SharedDescriptor)
        /// Those that are not done yet, the address at which the first of them continues, and what it has in swap.
        case processes(ArraySlice<Int32>, from: UInt64, swapped: UInt64)
    }

    /// The pages that the app had in memory before (`HelperThread.bringBack`), if those are what it has touched since it was pushed out last;
    /// `nil`: they are not, or are not known yet.
    package private(set) var pages: [UInt8]?
    /// What is to be found first.
    private var record: SharedDescriptor?
    private let thread: HelperThread
    private let enclosure: Enclosure
    private var target: Target
    /// How much may be in swap then that was not before.
    private let space: UInt64
    /// How many bytes may still be pushed out.
    private var left: UInt64
    private let before: Footprint
    /// After the last slice.
    private var last: Footprint
    /// All memory of the group then, the page cache included.
    private var charged: UInt64
    private var idleSlices = 0

    /// - Parameters:
    ///   - thread: reports completions, with `token`.
    ///   - bytes: the most that is pushed out.
    package init(_ enclosure: Enclosure, upTo bytes: UInt64, thread: HelperThread) throws(SystemError) {
        self.enclosure = enclosure
        self.thread = thread
        before = try enclosure.footprint()
        space = bytes
        last = before
        charged = enclosure.reclaimableGroup.map(chargedBytes) ?? 0
        // From zram the program reads its pages as fast itself.
        if enclosure.proc.hasDiskSwap {
            let pids = try enclosure.pids().flatMap { withUnsafeBytes(of: $0) { [UInt8]($0) } }
            let file = try MemoryFile.empty("pages")
            try writeAll(pids, to: file, path: "pages")
            record = SharedDescriptor(file)
        }
        if let group = enclosure.reclaimableGroup {
            target = .group(group)
            left = before.resident
        } else {
            let pids = try enclosure.pids()
            target = .processes(pids[...], from: 0, swapped: enclosure.proc.swappedBytes(of: pids.first))
            left = bytes
        }
    }

    /// Submits the next slice.
    /// - Returns: whether there is one: a completion follows, for `completed`.
    package func submit(token: UInt64) throws(SystemError) -> Bool {
        if let record { return try thread.recordPages(in: try record.descriptor.duplicate(), token: token) }
        while left > 0, idleSlices < Self.mostIdleSlices {
            let bytes = min(left, Self.slice)
            switch target {
            case .group(let folder):
                return try thread.reclaim(bytes, ofGroup: try folder.descriptor.duplicate(), token: token)
            case .processes(let pids, let address, _):
                guard let pid = pids.first else { return false }
                guard let process = try? Process.open(pid) else {
                    target = next(of: pids)
                    continue
                }
                return try thread.reclaim(
                    bytes, of: try process.descriptor.descriptor.duplicate(), pid: pid, from: address, token: token)
            }
        }
        return false
    }

    /// A slice has ended, or what comes before the first.
    package func completed(_ completion: HelperThread.Completion) {
        if let found = record.take() {
            if completion.errno == 0 { pages = try? MemoryFile.contents(found.descriptor, limit: 4096) }
            return
        }
        switch target {
        case .group(let folder):
            let now = (try? enclosure.footprint()) ?? last
            let charged = chargedBytes(of: folder)
            // What is written to a disk is freed by a later slice. What was only read since it was pushed out before is in swap already.
            // Kernels before 6.9 can take pages of files first, in any number of slices.
            let effect = max(
                now.swapped - min(now.swapped, last.swapped), self.charged - min(self.charged, charged))
            idleSlices = effect < Self.smallestEffect ? idleSlices + 1 : 0
            left -= min(left, last.resident - min(last.resident, now.resident))
            if now.swapped - min(now.swapped, before.swapped) >= space { left = 0 }
            (last, self.charged) = (now, charged)
            if completion.errno != 0 { left = 0 }
        case .processes(let pids, _, let swapped):
            let now = enclosure.proc.swappedBytes(of: pids.first)
            left -= min(left, now - min(now, swapped))
            let isOver = completion.errno != 0 || completion.bytes == 0
            target = isOver ? next(of: pids) : .processes(pids, from: completion.bytes, swapped: now)
        }
        if completion.elapsed > Self.longestSlice { left = 0 }
    }

    private func next(of pids: ArraySlice<Int32>) -> Target {
        let rest = pids.dropFirst()
        return .processes(rest, from: 0, swapped: enclosure.proc.swappedBytes(of: rest.first))
    }

    /// What the app has now, and how many bytes of it were pushed out.
    package func result() throws(SystemError) -> (footprint: Footprint, bytes: UInt64) {
        let now = try enclosure.footprint()
        return (now, now.swapped - min(now.swapped, before.swapped))
    }
}

extension ProcFS {
    /// What a process has in swap; 0 if there is none, or it has ended.
    fileprivate func swappedBytes(of pid: Int32?) -> UInt64 {
        pid.flatMap { try? memory(of: $0) }?.swapped ?? 0
    }

    /// Whether an area of swap is not zram (proc_swaps(5)).
    package var hasDiskSwap: Bool {
        guard let bytes = try? readFile(at: root + "/swaps", limit: 64 * 1024) else { return false }
        var scanner = ByteScanner(bytes)
        _ = scanner.line()
        while let line = scanner.line() {
            if !line.isEmpty, !line.starts(with: "/dev/zram".utf8) { return true }
        }
        return false
    }
}

/// `memory.current` of a group.
private func chargedBytes(of group: SharedDescriptor) -> UInt64 {
    var scanner = ByteScanner((try? readFileIfPresent(at: "memory.current", in: group, limit: 64)) ?? [])
    return scanner.number() ?? 0
}

extension Enclosure {
    /// The folder of its cgroup, if the kernel reclaims memory of a group.
    fileprivate var reclaimableGroup: SharedDescriptor? {
        guard case .cgroup(let leaf) = kind, leaf.root.hasMemoryController, leaf.has("memory.reclaim") else {
            return nil
        }
        return leaf.folder
    }
}
