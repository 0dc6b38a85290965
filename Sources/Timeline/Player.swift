package import LifecycleCore

/// Plays the files of a recording through the core, in their order.
///
/// A file begins where the one before it ends, or earlier: what was recorded while the snapshot was made is in both.
package struct Player {
    /// What a listener gets.
    package enum Step {
        /// A file begins with this core, and nothing of what was before is known to be continued.
        case began(LifecycleCore, at: Instant, clock: Int64?)
        /// An event is about to be handled.
        case event(LoggedEvent, before: LifecycleCore)
        /// It was handled.
        case handled(LoggedEvent, effects: [Effect], after: LifecycleCore)
    }

    private var core: LifecycleCore?
    /// The number of the last event that was played.
    private var position: UInt64 = 0
    private var boot = ""
    private var clock: Int64?
    /// What identifies the last file.
    private var begun: (boot: String, firstEvent: UInt64, at: Instant?)?
    /// What cannot be played, in sentences.
    package private(set) var problems: [String] = []
    /// How many events were played.
    package private(set) var events = 0
    /// Whether a part of the files could not be played: it is damaged, cut, missing or of another version. A problem of the times alone
    /// is none.
    package private(set) var isIncomplete = false
    /// How many files could be played, at least in part.
    package private(set) var files = 0

    /// Sentences beyond these are counted only.
    private static let maximumProblems = 100
    /// The system clock was set, or the machine slept, if the two clocks differ by more.
    private static let clockTolerance: Int64 = 1_000_000

    package init() {}

    /// - Parameter problem: a sentence about what cannot be played.
    package mutating func add(problem: String) {
        isIncomplete = true
        record(problem)
    }

    private mutating func record(_ problem: String) {
        if problems.count < Self.maximumProblems { problems.append(problem) }
    }

    /// Plays one file.
    package mutating func play(_ segment: Segment, _ listener: (Step) -> Void) {
        // The newest file may have been replaced, and kept, while the files were read.
        let first = segment.events.first?.at
        if let begun, begun == (segment.boot, segment.firstEvent, first) { return }
        begun = (segment.boot, segment.firstEvent, first)
        files += 1
        let isContinued =
            core != nil && segment.boot == boot && segment.firstEvent > 0 && segment.firstEvent <= position
        if !isContinued {
            if core != nil, segment.boot == boot, segment.firstEvent > position {
                add(problem: "\(segment.firstEvent - position) events before \(segment.name) are missing")
            }
            core = segment.core
            position = segment.firstEvent
            listener(.began(segment.core, at: segment.events.first?.at ?? .origin, clock: segment.clock))
        }
        boot = segment.boot
        compare(segment)
        for event in segment.events.dropFirst(Int(clamping: position - segment.firstEvent)) {
            guard var playing = core else { return }
            // Not held twice while it changes.
            core = nil
            listener(.event(event, before: playing))
            let effects = playing.handle(event.event, at: event.at)
            position += 1
            events += 1
            listener(.handled(event, effects: effects, after: playing))
            core = playing
        }
        if let problem = segment.problem { add(problem: problem) }
    }

    /// The times of a span are counted from one reading of both clocks.
    private mutating func compare(_ segment: Segment) {
        let known = [clock, segment.clock, segment.lastClock].compactMap { $0 }
        if let low = known.min(), let high = known.max(), high - low > Self.clockTolerance {
            record(
                "\(segment.name): the system clock was set or the machine slept meanwhile: times for people differ by up to "
                    + Duration.microseconds(high - low).timeSpan)
        }
        clock = segment.lastClock ?? segment.clock ?? clock
    }
}
