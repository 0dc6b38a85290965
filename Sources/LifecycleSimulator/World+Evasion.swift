import LifecycleCore

/// Simulates apps that try to get more background time than they are allowed (L53).
extension World {
    /// Sets `BackgroundTimePerHourSec=`. An app that evades has a small one, is relaunched always, and has short deadlines, so
    /// that little time is allowed beyond the limit.
    mutating func limitBackgroundTime(of index: Int) {
        apps[index].policy.backgroundTimePerHour =
            evasionRandom.pick([.seconds(600), .seconds(600), .seconds(600), .seconds(20), .seconds(90), nil])
        guard scenario.hasEvasion, index < 2 else { return }
        faults.add(.evades)
        var policy = AppPolicy()
        policy.readiness = apps[index].policy.readiness
        policy.relaunch = .always
        policy.launchAtStart = .background
        policy.backgroundModes = index == 0 ? [] : .push
        policy.launchDeadline = .seconds(1)
        policy.backgroundDeadline = .seconds(1)
        policy.terminateDeadline = .seconds(1)
        policy.extendedDeadlineMax = .seconds(1)
        policy.exitsOnSuspend = evasionRandom.chance(200)
        policy.killMode = apps[index].policy.killMode
        policy.terminateSuspended = apps[index].policy.terminateSuspended
        policy.backgroundTimePerHour = index == 0 ? .seconds(10) : evasionRandom.pick([.seconds(30), .seconds(600)])
        apps[index].policy = policy
    }

    /// An app asks on the bus for itself, or for another one.
    mutating func askForApp(_ run: Int) {
        let asking = apps[runs[run].app].id
        let asked = evasionRandom.chance(800) ? asking : apps[evasionRandom.below(apps.count)].id
        let reasons: [LaunchReason] = [.push, .fetch, .socket, .timer, .accessory, .location]
        let request: Request =
            // The first app stays in the background.
            switch evasionRandom.below(asked == apps[0].id ? 4 : 8) {
            case 0: .launch(.background, reason: .user, url: nil)
            case 1, 2, 3: .launch(.background, reason: evasionRandom.pick(reasons), url: nil)
            case 6: .activate
            case 7: .launch(.foreground, reason: .user, url: nil)
            default: .push(payload: "wake \(evasionRandom.below(1000))")
            }
        lastRequest += 1
        // The daemon does not always find out which app asks.
        let known = evasionRandom.chance(900) ? asking : nil
        deliver(
            .requested(RequestID(lastRequest), asked, request, by: .app(known)),
            after: evasionRandom.within(0...2 * .millisecond))
    }
}
