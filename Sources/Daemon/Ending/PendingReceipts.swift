/// Keeps the receipts that the disk has refused in the logbook, which is in another file system in most cases, and writes
/// them to the disk when it has space again.
final class PendingReceipts {
    private static let prefix = "receipt/"

    private let receipts: ReceiptStore
    private let logbook: Logbook
    private let retries: StorageRetry
    /// The receipts that are in the logbook.
    private var recorded: Set<UInt64>

    init(receipts: ReceiptStore, logbook: Logbook, retries: StorageRetry) {
        self.receipts = receipts
        self.logbook = logbook
        self.retries = retries
        recorded = Set(logbook.recordNames.compactMap(Self.id))
    }

    private static func id(_ name: String) -> UInt64? {
        name.hasPrefix(prefix) ? UInt64(name.dropFirst(prefix.count)) : nil
    }

    /// The receipts that the previous daemon could not write, the oldest first.
    static func lines(in records: [String: [UInt8]]) -> [[UInt8]] {
        records.compactMap { name, line in id(name).map { (id: $0, line: line) } }
            .sorted { $0.id < $1.id }.map(\.line)
    }

    /// Called after each receipt. Does nothing while the disk takes them.
    func update() {
        record()
        if receipts.pending.isEmpty { return }
        retries.add("receipts") { [weak self] in
            guard let self else { return true }
            try? self.receipts.writePending()
            self.record()
            return self.receipts.pending.isEmpty
        }
    }

    /// Makes the records of the logbook those of the receipts that wait.
    private func record() {
        if receipts.pending.isEmpty, recorded.isEmpty { return }
        var waiting: Set<UInt64> = []
        for line in receipts.pending {
            guard let id = ReceiptStore.id(ofLine: line) else { continue }
            waiting.insert(id)
            if !recorded.contains(id) { logbook.persist(line, as: Self.prefix + "\(id)") }
        }
        for id in recorded.subtracting(waiting).sorted() { logbook.removeRecord(Self.prefix + "\(id)") }
        recorded = waiting
    }
}
