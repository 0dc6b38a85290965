import Posix

/// Goes through the descriptors of processes, in pieces of some 100 µs.
struct DescriptorWalk {
    /// An open descriptor of a process.
    struct Item {
        let pid: Int32
        let number: String
        /// What its link in /proc says: `/dev/dri/card0`, `socket:[4711]`.
        let target: ArraySlice<UInt8>
    }

    /// The most descriptors that are looked at.
    private static let mostDescriptors = 16_384
    private static let piece = 64

    private let proc: ProcFS
    private var unlisted: ArraySlice<Int32>
    private var names: ArraySlice<String> = []
    private var examined: Int32 = 0
    private var count = 0

    init(_ proc: ProcFS, _ processes: [Int32]) {
        self.proc = proc
        unlisted = processes[...]
    }

    /// Does the next piece. Processes that have ended, and those that may not be examined, have no descriptors.
    /// - Returns: whether there is more.
    mutating func advance(_ examine: (Item) throws(SystemError) -> Void) throws(SystemError) -> Bool {
        guard !names.isEmpty else {
            guard count < Self.mostDescriptors, let pid = unlisted.popFirst() else { return false }
            examined = pid
            do {
                names = try folderEntries(at: "\(proc.root)/\(pid)/fd")[...]
            } catch {
                guard error.meansGone || error.isRefusal else { throw error }
            }
            return true
        }
        for name in names.prefix(Self.piece) {
            guard let target = linkTarget("\(proc.root)/\(examined)/fd/\(name)", limit: 4097) else { continue }
            try examine(Item(pid: examined, number: name, target: target))
        }
        count += Self.piece
        names = names.dropFirst(Self.piece)
        return true
    }
}

extension Enclosure {
    /// The processes whose descriptors are searched.
    func searchedPids() throws(SystemError) -> [Int32] {
        switch kind {
        case .cgroup: try pids()
        case .family(let family): try family.knownPids()
        }
    }
}
