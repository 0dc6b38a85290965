import LifecycleCore

/// The words of processor time in the background (L44).
extension Line {
    mutating func add(_ event: ProcessorEvent) {
        switch event {
        case .measured(let used, let waited):
            add(" has used ")
            add(used)
            add(" of processor time, and waited ")
            add(waited)
        case .gpuUsed(let time): add(" has used a GPU for ", time)
        }
    }

    mutating func add(_ effect: ProcessorEffect, _ app: String) {
        switch effect {
        case .throttle: add("throttle ", app)
        case .unthrottle: add("unthrottle ", app)
        case .measure: add("measure the processor time of ", app)
        case .watchGPU(let begins):
            add(begins ? "watch the use of GPUs by " : "end the watch of the use of GPUs by ", app)
        case .limit(let limit):
            add(limit == nil ? "end the limit of the processor time of " : "limit the processor time of ", app)
            if let limit {
                add(": ")
                add(limit)
            }
        }
    }

    mutating func addProcessor(_ report: Report) {
        switch report {
        case .processorUseHigh(let id, let use):
            add(id.name)
            add(": uses the processor in the background: ")
            add(use.amount)
        case .processorThrottled(let id, let use):
            add(id.name)
            add(": gets less of the processor: ")
            add(use.amount)
        case .processorThrottleEnded(let id):
            add(id.name)
            add(": gets as much of the processor as before")
        default: break
        }
    }

    mutating func addProcessor(_ policy: AppPolicy) {
        switch policy.backgroundCPUAction {
        case .ignore: return
        case .kill: add(", background CPU: kill above ")
        case .throttle: add(", background CPU: throttle above ")
        }
        add(policy.backgroundCPULimit)
        add(" in ")
        add(policy.backgroundCPUTime)
    }
}
