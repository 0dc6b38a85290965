import LifecycleCore

/// What a run uses of the processors (L44). All of it follows from the numbers of the seed and of the run, without a random draw.
struct RunProcessor {
    /// What a run needs: thousandths of one processor, for a time, and then nothing for another time.
    struct Habit {
        let rate: Microseconds
        let busy: Microseconds
        let rest: Microseconds

        /// The processor time that it needs in its first `time`.
        func need(in time: Microseconds) -> Microseconds {
            let (cycles, part) = time.quotientAndRemainder(dividingBy: busy + rest)
            return (cycles * busy + min(part, busy)) * rate / 1000
        }
    }

    /// When the program was executed; `nil`: it uses nothing.
    private(set) var start: Microseconds?
    private var habit = Habit(rate: 0, busy: .second, rest: 0)
    /// The largest share of one processor that it gets, in thousandths.
    var limit: Int?
    private(set) var used: Microseconds = 0
    private(set) var waited: Microseconds = 0
    /// For how long it had run when that was brought up to date.
    private var ran: Microseconds = 0

    private static let always: Microseconds = 1 << 40

    mutating func begin(_ number: UInt64, at now: Microseconds) {
        start = now
        habit =
            switch number % 10 {
            case 0: Habit(rate: 0, busy: .second, rest: 0)
            case 1, 2: Habit(rate: 1000, busy: Self.always, rest: 0)
            case 3: Habit(rate: 450, busy: Self.always, rest: 0)
            case 4: Habit(rate: 700, busy: Self.always, rest: 0)
            case 5: Habit(rate: 1000, busy: 5 * .second, rest: 5 * .second)
            case 6: Habit(rate: 900, busy: Self.always, rest: 0)
            case 7: Habit(rate: 4000, busy: 3 * .second, rest: 20 * .second)
            case 8: Habit(rate: 1600, busy: 15 * .second, rest: 40 * .second)
            default: Habit(rate: 1000, busy: 40 * .second, rest: 1000 * .second)
            }
    }

    /// - Parameter time: for how long the run has not been frozen since its start.
    mutating func update(ran time: Microseconds) {
        guard time > ran else { return }
        let need = habit.need(in: time) - habit.need(in: ran)
        let got = limit.map { min(need, (time - ran) * Microseconds($0) / 1000) } ?? need
        used += got
        waited += min(time - ran, need - got)
        ran = time
    }
}

extension World {
    /// `BackgroundCPU=` and what belongs to it. In seeds without programs that use the processors nothing is measured, so that
    /// these seeds stay unchanged.
    mutating func limitProcessorUse(of index: Int) {
        guard scenario.hasBurning else {
            apps[index].policy.backgroundCPU = .ignore
            return
        }
        let number = Int(scenario.seed % 1000) + index
        let actions: [AppPolicy.BackgroundCPU?] = [nil, .throttle, nil, .kill, nil, .throttle, nil, .ignore]
        apps[index].policy.backgroundCPU = actions[number % actions.count]
        apps[index].policy.backgroundCPULimit = [800, 800, 500, 1500][number % 4]
        apps[index].policy.backgroundCPUTime = [Duration.seconds(6), .seconds(12), .seconds(60)][number % 3]
    }

    /// The program is executed. A worker that uses the processors is at work for a while.
    mutating func beginBurning(_ run: Int) {
        guard scenario.hasBurning, !isQuiet else { return }
        let number = scenario.seed &* 31 &+ runs[run].id.number &* 17
        runs[run].processor.begin(number, at: now)
        guard apps[runs[run].app].policy.role == .worker else { return }
        traffic.runs[run].use(10 * .second * Microseconds(1 + number % 11), at: now)
    }

    /// What the run has used until now.
    func processor(of run: Int) -> RunProcessor {
        var processor = runs[run].processor
        guard runs[run].program == .running, let start = processor.start else { return processor }
        processor.update(ran: now - start - runs[run].frozenTime(at: now))
        return processor
    }

    mutating func measureProcessor(_ run: Int) {
        let processor = processor(of: run)
        runs[run].processor = processor
        let measured = RunEvent.processor(.measured(used: processor.used.duration, waited: processor.waited.duration))
        deliver(.run(runs[run].id, measured), after: 5 + now % 400)
    }

    mutating func limitProcessor(_ run: Int, _ limit: Int?) {
        runs[run].processor = processor(of: run)
        runs[run].processor.limit = limit
    }
}
