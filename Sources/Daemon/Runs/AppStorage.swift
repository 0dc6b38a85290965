/// What the daemon stores of apps beyond a run, in files and memfds.
struct AppStorage {
    let receipts: ReceiptStore
    let pendingReceipts: PendingReceipts
    let launches: LaunchStore
    let summaries: SummaryStore
    let output: OutputFiles
    let inboxes: InboxFolders
    let stored: StoredDescriptors
    /// Repeats what a full file system has refused.
    let retries: StorageRetry
}
