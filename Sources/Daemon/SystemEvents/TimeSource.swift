import Glibc
import Linux
import Posix
import Schedule
import Systemd

/// Significant changes of the time: midnight, a clock that was set, another time zone.
final class TimeSource {
    /// A change of the clock is reported from this on, in microseconds. The kernel reports one also after each sleep of the machine.
    static let leastChange = 1_000_000

    private let link: String
    private let report: (String) -> Void
    private var watch: TimerWatch?
    private var zone: String?
    private var offset: Int

    /// - Parameters:
    ///   - folder: `/etc`; another one in tests.
    ///   - report: gets `midnight`, `clock-set` or `time-zone NAME`.
    init(_ loop: EventLoop, folder: String, report: @escaping (String) -> Void) throws(SystemError) {
        link = folder + "/localtime"
        self.report = report
        offset = Self.offset()
        zone = readZone()
        watch = try TimerWatch(loop, folder: folder) { [weak self] in self?.handle($0, offset: Self.offset()) }
        arm()
    }

    /// CLOCK_REALTIME without CLOCK_BOOTTIME, in microseconds: it changes when the clock is set, and not while the machine sleeps.
    static func offset() -> Int {
        let now = ClockReading.now()
        return now.realtime - now.boottime
    }

    func handle(_ change: TimerWatch.Change, offset new: Int) {
        switch change {
        case .elapsed: report("midnight")
        case .clockSet:
            // A clock that is slewed drifts a little between two looks.
            if abs(new - offset) >= Self.leastChange { report("clock-set") }
        case .zoneFolderChanged:
            let name = readZone()
            // Between the removal of a link and the next one there is none for a moment.
            guard let name, name != zone else { return }
            zone = name
            report("time-zone \(name)")
        }
        offset = new
        arm()
    }

    private func arm() {
        let now = ClockReading.now().realtime
        guard let midnight = CalendarEvent("daily")?.next(after: now) else { return }
        try? watch?.timer.arm(at: midnight)
    }

    private func readZone() -> String? {
        var target = [UInt8](repeating: 0, count: 256)
        let count = readlink(link, &target, target.count)
        return count > 0 ? Readings.timeZone(link: String(decoding: target[..<count], as: UTF8.self)) : nil
    }
}
