import Control
import LifecycleCore
import Manifest
import Schedule
import Systemd

/// The steps about fetches, timers and URLs.
extension CertifySteps {
    static func fetch(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        guard app.manifest.timers.fetchInterval != nil else {
            return .notApplicable("FetchIntervalSec= or BackgroundModes=fetch is not set")
        }
        return try elapse(app, "FetchIntervalSec=1s")
    }

    static func timer(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        guard app.manifest.timers.hasTimers else {
            return .notApplicable("OnCalendar=, OnUnitActiveSec= and OnBootSec= are not set")
        }
        // A time that has passed elapses at once.
        let moment = Int((EventLoop.now() + .seconds(1)) / .milliseconds(1))
        return try elapse(app, "OnCalendar=\nOnBootSec=\(moment)ms\nRandomizedDelaySec=0")
    }

    /// The daemon wakes the app at a near time, in place of those of its manifest.
    private static func elapse(_ app: Rehearsal, _ settings: String) throws(Failure) -> CertifyOutcome {
        try app.setWakes(settings)
        let isWoken = try app.wait { () throws(Failure) in
            app.last(.stateChanged) { $0.reason == StateReason.woken.rawValue } != nil || app.last(.ended) != nil
        }
        try app.setWakes("")
        if let end = try app.unexpectedEnd() { return end }
        return isWoken ? try completion(app) : .broken("it was not woken")
    }

    static func url(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        guard let scheme = app.manifest.urlSchemes.first else { return .notApplicable("URLSchemes= names none") }
        let start = EventLoop.now()
        do throws(Failure) {
            _ = try app.request("Open", .string("\(scheme):certify"), .dictionary([]))
        } catch  where error.name == ControlNames.Failure.opensNoURLs.name {
            return .ignored("it takes URLs only at its launch: no connection to its private bus handles openURL")
        }
        let took = EventLoop.now() - start
        if let end = try app.unexpectedEnd() { return end }
        let state = try app.status().state
        guard state == "active" else { return .broken("it is \(state) instead of active") }
        return .handled("thawed and brought to the foreground; notified of the URL on its private bus", took)
    }
}
