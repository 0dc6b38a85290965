/// A moment on the clocks that timers count on, each in microseconds.
package struct TimerMoment: Hashable, Sendable {
    /// CLOCK_REALTIME: calendars.
    package var realtime: Int
    /// CLOCK_MONOTONIC: times since the boot and since the last launch.
    package var monotonic: Int
    /// CLOCK_BOOTTIME, which counts while the machine sleeps, too: intervals of fetches.
    package var boottime: Int

    package init(realtime: Int, monotonic: Int, boottime: Int) {
        self.realtime = realtime
        self.monotonic = monotonic
        self.boottime = boottime
    }
}

/// What a timer wakes an app for.
package enum TimerPurpose: String, CaseIterable, Hashable, Sendable {
    /// `OnCalendar=`, `OnUnitActiveSec=`, `OnBootSec=`.
    case timer
    /// `FetchIntervalSec=`
    case fetch

    package var reason: LaunchReason {
        switch self {
        case .timer: .timer
        case .fetch: .fetch
        }
    }
}

/// What happens to the timers of an app. The daemon finds out when they elapse, from the clocks and from `TimerState`.
package enum TimerEvent: Hashable, Sendable {
    /// The daemon has read a manifest with timers, for the first time since the boot. `last`: when they elapsed last, on
    /// CLOCK_REALTIME, as a file says that outlives the boot.
    case began(TimerMoment, last: Int?)
    /// CLOCK_REALTIME was set back, or the manifest names other times: calendars are looked at from this time of it on.
    case rebased(to: Int)
    case elapsed(TimerPurpose, TimerMoment)
}

/// What of an app's timers outlives the daemon: from this the next one finds out when they elapse.
package struct TimerState: Hashable, Sendable {
    package var began: TimerMoment
    /// The next time of a calendar is the first one after this, on CLOCK_REALTIME in microseconds.
    package var calendarBase: Int
    /// The last time that a timer elapsed, and on CLOCK_REALTIME, also before the boot; `nil`: none did.
    package var lastTimer: TimerMoment?
    package var lastTimerRealtime: Int?
    package var lastFetch: TimerMoment?
    /// The last launch of the app, on CLOCK_MONOTONIC in microseconds.
    package var lastLaunch: Int?
    /// By what `FetchIntervalSec=` is multiplied.
    package var fetchFactor = 1
    /// When a wake that was refused is tried again (L11, L53).
    var timerRetry: Instant?
    var fetchRetry: Instant?

    /// How much rarer fetches become that find nothing. A day becomes four, and the first one that finds something ends it.
    static let largestFetchFactor = 4

    init(began: TimerMoment, calendarBase: Int) {
        self.began = began
        self.calendarBase = calendarBase
    }

    var retry: (at: Instant, kind: TimerPurpose)? {
        switch (timerRetry, fetchRetry) {
        case (let timer?, let fetch?): timer <= fetch ? (timer, .timer) : (fetch, .fetch)
        case (let timer?, nil): (timer, .timer)
        case (nil, let fetch?): (fetch, .fetch)
        case (nil, nil): nil
        }
    }

    func retry(of purpose: TimerPurpose) -> Instant? {
        switch purpose {
        case .timer: timerRetry
        case .fetch: fetchRetry
        }
    }

    mutating func setRetry(_ kind: TimerPurpose, _ at: Instant?) {
        switch kind {
        case .timer: timerRetry = at
        case .fetch: fetchRetry = at
        }
    }

    mutating func elapsed(_ kind: TimerPurpose, _ moment: TimerMoment) {
        switch kind {
        case .timer:
            lastTimer = moment
            lastTimerRealtime = moment.realtime
            calendarBase = moment.realtime
        case .fetch: lastFetch = moment
        }
    }
}
