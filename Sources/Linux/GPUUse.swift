import Glibc
package import Posix

/// What processes have used of GPUs (Documentation/gpu/drm-usage-stats.rst of the kernel).
package struct GPUUse: Equatable {
    /// An engine of a client: an open device, which several descriptors and processes may share.
    private struct Engine: Hashable {
        /// `drm-driver`, `drm-pdev` and `drm-client-id`.
        var client: [String]
        var name: String
    }

    /// In ns, or in cycles (`drm-cycles-`) of a driver that counts no time.
    private var times: [Engine: UInt64] = [:]
    private var cycles: [Engine: UInt64] = [:]

    /// Adds what /proc/PID/fdinfo/N of a device has: `drm-engine-render:\t123 ns`.
    /// - Parameter device: tells clients apart whose driver gives them no number.
    mutating func add(_ info: [UInt8], device: String) {
        var (driver, bus, number) = ("", device, "")
        var (foundTimes, foundCycles): ([String: UInt64], [String: UInt64]) = ([:], [:])
        var scanner = ByteScanner(info)
        while let line = scanner.line() {
            guard line.starts(with: "drm-".utf8), let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let key = line[..<colon].text
            var words = ByteScanner(line[line.index(after: colon)...])
            guard let word = words.word() else { continue }
            switch key {
            case "drm-driver": driver = word.text
            case "drm-pdev": bus = word.text
            case "drm-client-id": number = word.text
            default:
                guard let value: UInt64 = parseNumber(word) else { continue }
                if key.hasPrefix("drm-engine-capacity-") { continue }
                if key.hasPrefix("drm-engine-") { foundTimes[key] = value }
                if key.hasPrefix("drm-cycles-") { foundCycles[key] = value }
            }
        }
        let client = [driver, bus, number]
        // A client that was found before has the same numbers, or newer ones.
        for (name, value) in foundTimes { times[Engine(client: client, name: name)] = value }
        for (name, value) in foundCycles { cycles[Engine(client: client, name: name)] = value }
    }

    /// What was used since then; zero: cycles, of which the time is not known; `nil`: nothing. All that a new client has used counts.
    package func growth(since before: GPUUse) -> Duration? {
        let time = Self.growth(times, before.times)
        if time > 0 { return .nanoseconds(Int64(clamping: time)) }
        return Self.growth(cycles, before.cycles) > 0 ? .zero : nil
    }

    private static func growth(_ now: [Engine: UInt64], _ before: [Engine: UInt64]) -> UInt64 {
        var sum: UInt64 = 0
        for (engine, value) in now {
            let old = before[engine] ?? 0
            if value > old { sum = sum.addingReportingOverflow(value - old).partialValue }
        }
        return sum
    }
}

/// Reads what processes have used of GPUs, in pieces of some 100 µs.
package final class GPUSearch {
    private let proc: ProcFS
    private var walk: DescriptorWalk
    package private(set) var use = GPUUse()

    init(_ proc: ProcFS, _ processes: [Int32]) {
        self.proc = proc
        walk = DescriptorWalk(proc, processes)
    }

    /// Does the next piece.
    /// - Returns: whether there is more.
    package func advance() throws(SystemError) -> Bool { try walk.advance(examine) }

    private func examine(_ item: DescriptorWalk.Item) throws(SystemError) {
        guard item.target.starts(with: "/dev/dri/".utf8) || item.target.starts(with: "/dev/accel/".utf8) else { return }
        do {
            if let info = try proc.readRecord("fdinfo/\(item.number)", of: item.pid) {
                use.add(info, device: item.target.text)
            }
        } catch {
            guard error.isRefusal || error.errno == EFBIG else { throw error }
        }
    }
}

extension Enclosure {
    /// Begins to read what processes of the app have used of GPUs.
    /// - Parameter proc: where their descriptors are described.
    package func gpuSearch(in proc: ProcFS) throws(SystemError) -> GPUSearch { GPUSearch(proc, try searchedPids()) }
}
