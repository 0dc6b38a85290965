/// The processor time that apps use in the background is limited (L44): apps that use more are killed, workers get less of it.
extension LifecycleCore {
    private enum ProcessorChange {
        case nothing
        /// The run is in the background.
        case begin
        /// What was measured counts no more.
        case discard
        /// The manifest no longer says that it is throttled.
        case release
    }

    /// Begins and ends to measure, once an event is carried out.
    mutating func followProcessorUse(_ index: AppIndex, _ now: Instant) {
        switch processorChange(index) {
        case .nothing: break
        case .begin:
            let interval = ProcessorWatch.interval(apps[index].policy.backgroundCPUTime)
            self[run: index].processor.nextAt = now + interval
        case .discard:
            endProcessorThrottle(index)
            self[run: index].processor = ProcessorWatch()
        case .release: endProcessorThrottle(index)
        }
    }

    @inline(__always)
    private func processorChange(_ index: AppIndex) -> ProcessorChange {
        guard case .running(let running) = apps[index].life else { return .nothing }
        let stored = running.sharedStorage
        let isCounting = stored.run.processor.nextAt != nil
        switch running.execution {
        case .enteringBackground, .background:
            switch processorAction(index) {
            case .ignore: return isCounting ? .discard : .nothing
            case .kill: if stored.run.processor.throttle != nil { return .release }
            case .throttle: break
            }
            return isCounting ? .nothing : .begin
        case .launching, .foreground: return isCounting ? .discard : .nothing
        case .suspending, .suspended, .waking, .terminating: return .nothing
        }
    }

    /// What happens to the app above its limit. With `ignore` nothing is measured, and what was measured counts no more.
    @inline(__always)
    private func processorAction(_ index: AppIndex) -> AppPolicy.BackgroundCPU {
        isInMode(index, .processing) || isInDrySleep(index) ? .ignore : apps[index].policy.backgroundCPUAction
    }

    /// When an app in the background is measured next.
    func processorLookDue(_ index: AppIndex, _ stored: RunStorage) -> Instant? {
        processorAction(index) == .ignore ? nil : stored.run.processor.nextAt
    }

    mutating func processorLookIsDue(_ index: AppIndex, _ now: Instant) {
        let interval = ProcessorWatch.interval(apps[index].policy.backgroundCPUTime)
        self[run: index].processor.nextAt = now + interval
        self[run: index].processor.askedAt = now
        effects.append(.run(self[run: index].id, .processor(.measure)))
    }

    mutating func processorMeasured(_ index: AppIndex, _ used: Duration, _ waited: Duration, _ now: Instant) {
        guard let asked = self[run: index].processor.askedAt else { return }
        var watch = self[run: index].processor
        watch.askedAt = nil
        watch.record(ProcessorWatch.Sample(at: asked, used: used, waited: waited))
        let window = watch.window(apps[index].policy.backgroundCPUTime, at: now)
        self[run: index].processor = watch
        switch apps[index].phase {
        case .enteringBackground, .background: if let window { judge(index, window, now) }
        case .notRunning, .launching, .foreground, .suspending, .suspended, .waking, .terminating, .ending: break
        }
    }

    /// The limit is one of the average over at least `BackgroundCPUSec=`. The warning does not wait for that time.
    private mutating func judge(_ index: AppIndex, _ window: ProcessorWatch.Window, _ now: Instant) {
        let policy = apps[index].policy
        let (period, limit) = (policy.backgroundCPUTime, policy.backgroundCPULimit)
        let use = BackgroundUse(used: window.used, within: window.time, limit: limit)
        let isWhole = window.time >= period
        let isOver = isWhole && window.used * 1000 > window.time * limit
        if window.used * 2000 > max(period, window.time) * limit {
            if !self[run: index].processor.isWarned { report(.processorUseHigh(apps[index].id, use)) }
            self[run: index].processor.isWarned = true
        } else if isWhole, window.used * 4000 <= window.time * limit {
            self[run: index].processor.isWarned = false
        }
        switch processorAction(index) {
        case .ignore: break
        case .kill: if isOver { kill(index, .overProcessorLimit(use), .cpuLimit, now) }
        case .throttle:
            if self[run: index].processor.throttle == nil {
                if isOver { throttleProcessor(index, use, now) }
            } else if isWhole, (window.used + window.waited) * 2000 <= window.time * limit {
                // What it waited for counts too: it uses less because it gets less.
                endProcessorThrottle(index)
            }
        }
    }

    /// The weights follow once the event is carried out (`followWake`).
    private mutating func throttleProcessor(_ index: AppIndex, _ use: BackgroundUse, _ now: Instant) {
        self[run: index].processor.throttle = ProcessorWatch.Throttle(since: now, use: use)
        effects.append(.run(self[run: index].id, .processor(.limit(use.limit))))
        report(.processorThrottled(apps[index].id, use))
    }

    mutating func endProcessorThrottle(_ index: AppIndex) {
        guard isProcessorThrottled(index) else { return }
        self[run: index].processor.throttle = nil
        effects.append(.run(self[run: index].id, .processor(.limit(nil))))
        report(.processorThrottleEnded(apps[index].id))
    }

    @inline(__always)
    func isProcessorThrottled(_ index: AppIndex) -> Bool {
        // The run is read in place: this is asked at each event of an app.
        guard case .running(let running) = apps[index].life else { return false }
        return running.sharedStorage.run.processor.throttle != nil
    }
}
