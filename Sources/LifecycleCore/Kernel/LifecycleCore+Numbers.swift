/// Numbers of runs and receipts after a recovery that lacks events.
extension LifecycleCore {
    /// The number of the next receipt.
    package var nextReceiptID: UInt64 { nextReceipt }

    /// Continues with larger numbers: the previous daemon may have used numbers that this core does not know.
    package mutating func skipNumbers(beforeRun run: UInt64, beforeReceipt receipt: UInt64) {
        nextRun = max(nextRun, run)
        nextReceipt = max(nextReceipt, receipt)
    }
}
