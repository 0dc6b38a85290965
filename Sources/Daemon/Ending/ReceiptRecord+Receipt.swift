import Control
import LifecycleCore
import Reports

extension ReceiptRecord {
    /// The record of a receipt of the core.
    init(_ receipt: Receipt, time: Timestamp) {
        self.init()
        id = receipt.id
        app = receipt.app.name
        pid = receipt.pid
        self.time = time
        state = receipt.state.rawValue
        namespace = receipt.namespace.rawValue
        code = receipt.codeText
        explanation = receipt.explanation
        switch receipt.exit {
        case .exited(let status): exitStatus = status
        case .signaled(let number, let hasCore):
            signal = number
            coreDumped = hasCore
        case .unknown, .lost: break
        }
        wall = receipt.wall
        cpu = receipt.cpu
        memoryBytes = receipt.memory
        peakMemoryBytes = receipt.peakMemory
        if receipt.isForMemory { endedForMemory = true }
        deadline = receipt.deadline.map(DeadlineStatus.init)
        remainingProcesses = receipt.remaining.map { UInt64($0.count) }
        remainingNames = receipt.remaining?.names ?? []
        candidates = receipt.candidates.map(JetsamCandidate.init)
    }
}

extension DeadlineStatus {
    fileprivate init(_ use: Receipt.DeadlineUse) {
        self.init()
        what = use.what.rawValue
        allowed = use.allowed
        wall = use.wall
        cpu = use.cpu
    }
}

extension JetsamCandidate {
    init(_ candidate: Receipt.Candidate) {
        self.init()
        app = candidate.app.name
        state = candidate.state.rawValue
        memoryBytes = candidate.memory
    }
}
