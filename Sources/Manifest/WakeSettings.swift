import LifecycleCore
import Schedule

/// The settings about waking and idleness (L49 to L51).
extension AppManifest {
    static var idleSettings: [Setting<AppManifest>] {
        [
            .value(
                "Lifecycle", "IdleSec", "a time span of at least 100ms such as 5s, 1min 30s or infinity",
                \.policy.idleTime, parseIdleTime),
            .longTime("Lifecycle", "RequestSec", \.policy.requestTime),
            .value(
                "Lifecycle", "PulseSec", "a time span of at least 1s such as 20s, 2min or infinity", \.policy.pulseTime,
                parsePulseTime),
            .value("Lifecycle", "Timers", "yes or no", \.policy.keepsTimers, parseBoolean),
            .value(
                "Lifecycle", "IdleCPU", "a percentage of one processor from 0.1% to 100% such as 1% or 0.5%",
                \.policy.idleProcessorShare, parseProcessorShare),
            Setting(
                section: "Lifecycle", key: "KeepAwake",
                expected: "none, or one or more of " + AppPolicy.KeepAwake.named.map(\.name).joined(separator: ", "),
                apply: { manifest, text throws(ValueError) in try manifest.applyKeepAwake(text) },
                reset: { manifest, _ in manifest.keepAwake = nil }),
        ]
    }

    static var wakeSettings: [Setting<AppManifest>] {
        [
            .value("Wake", "Traffic", "yes or no", \.traffic) { text -> Bool?? in
                parseBoolean(text).map { .some($0) }
            },
            .value(
                "Wake", "WakeThreshold", "a size from 1 to 64K such as 64, and optionally a time span such as 64 30s",
                \.policy.wakeThreshold, parseWakeThreshold),
            .value("Wake", "WakeOnLocation", "a distance from 1 to 100000 meters", \.wakeDistance) { text -> Int?? in
                parseNumber(text, in: 1...100_000).map { .some($0) }
            },
            .value("Wake", "UnifiedPush", "yes or no", \.unifiedPush, parseBoolean),
        ]
    }

    /// The first assignment replaces the default, and each further one adds to it. `none` empties the list: an empty value is
    /// the default.
    private mutating func applyKeepAwake(_ text: String) throws(ValueError) {
        guard text != "none" else {
            self.keepAwake = []
            return
        }
        var reasons: AppPolicy.KeepAwake = self.keepAwake ?? []
        for word in plainWords(text) {
            guard let reason = AppPolicy.KeepAwake.named.first(where: { $0.name == word.text })?.value else {
                throw ValueError.invalid(word.text, offset: word.offset)
            }
            reasons.insert(reason)
        }
        self.keepAwake = reasons
    }

    /// Sets what follows from several settings, after all files are read.
    mutating func resolveDefaults() {
        policy.wakesOnTraffic = resolvedTraffic
        policy.keepAwake = self.keepAwake ?? AppPolicy().keepAwake
        policy.holdsSockets = !self.sockets.all.isEmpty
        if !fetches { self.timers.fetchInterval = nil }
        if !policy.backgroundModes.contains(.push) { self.unifiedPush = false }
        if self.unifiedPush, let kind = NotificationKinds(named: Notification.pushEndpoint) {
            policy.notifications.insert(kind)
        }
        policy.hasTimers = self.timers.hasTimers || fetches
        if policy.role == .worker, policy.launchAtStart == .foreground { policy.launchAtStart = .background }
    }

    private var resolvedTraffic: Bool { self.traffic ?? (policy.role == .worker) }

    /// Warns of settings that have no effect because of the role, of `Traffic=` or of one another.
    func checkWaking(
        _ reader: SettingsReader<AppManifest>, _ file: String, _ diagnostics: inout DiagnosticList
    ) {
        func warn(_ key: String, _ sentence: String) {
            guard reader.assignedKeys.contains(key) else { return }
            diagnostics.warn(reader.locations[key] ?? .whole(file), sentence)
        }
        func warnOfNoEffect(_ keys: [String], _ reason: String) {
            for key in keys { warn(key, "\(key)= has no effect: \(reason)") }
        }
        if policy.role == .worker {
            if policy.launchAtStart == .foreground {
                warn(
                    "LaunchAtStart",
                    "LaunchAtStart=foreground has the effect of LaunchAtStart=background, because a worker is never in the "
                        + "foreground")
            }
            warnOfNoEffect(
                ["WatchdogSec", "ResignActive", "BecomeActive", "EnterForeground"],
                "a worker is never in the foreground")
            warnOfNoEffect(
                ["BackgroundTimeSec", "ExpirationNoticeSec", "TaskExpiring"],
                "the background time of a worker is not limited")
            warnOfNoEffect(["SuspendDelaySec"], "a worker is suspended when it was idle for IdleSec=")
            var resolved = self
            resolved.resolveDefaults()
            if resolved.policy.onlyRequestsWake, policy.idleTime < longestTimeSpan {
                warn("Traffic", "once the worker is suspended, \(resolved.policy.whyOnlyRequestsWake)")
            }
        }
        if self.unifiedPush, !policy.backgroundModes.contains(.push) {
            warnOfNoEffect(["UnifiedPush"], "BackgroundModes= does not contain push")
        }
        if !resolvedTraffic { warnOfNoEffect(["WakeThreshold"], "input does not wake the app without Traffic=yes") }
        guard resolvedTraffic || policy.role == .worker else {
            return warnOfNoEffect(
                ["IdleSec", "KeepAwake", "RequestSec", "IdleCPU"],
                "idleness is not measured without Traffic=yes or Role=worker")
        }
        let reasons = self.keepAwake ?? AppPolicy().keepAwake
        if !reasons.contains(.cpu) { warnOfNoEffect(["IdleCPU"], "KeepAwake= does not contain cpu") }
        if policy.role != .worker {
            warnOfNoEffect(["Timers", "PulseSec"], "only workers are thawed for their timers")
        }
        if !reasons.contains(.requests) { warnOfNoEffect(["RequestSec"], "KeepAwake= does not contain requests") }
        if policy.exitsOnSuspend, resolvedTraffic {
            warn(
                "ExitsOnSuspend",
                "input does not wake the app: with ExitsOnSuspend=yes it is terminated instead of suspended")
        }
    }
}

extension AppPolicy {
    /// Why nothing but a request wakes a worker once it is suspended, and the settings that change that. The end of a sentence.
    package var whyOnlyRequestsWake: String {
        let input = wakesOnTraffic ? "it has nothing at which input can arrive" : "its input does not (Traffic=no)"
        let timers = keepsTimers ? "it has no timer" : "its timers do not (Timers=no)"
        let settings = [wakesOnTraffic ? nil : "Traffic=yes", keepsTimers ? nil : "Timers=yes"].compactMap { $0 }
        let remedies = settings.isEmpty ? "ListenStream=" : settings.joined(separator: ", ") + " or ListenStream="
        return
            "nothing but a request wakes it: \(input), \(timers), and the daemon holds no socket for it; \(remedies) "
            + "can change that, and IdleSec=infinity keeps it awake"
    }
}

/// The shortest `IdleSec=`: the app is measured once in this time while it is awake.
private let shortestIdleTime = Duration.milliseconds(100)

/// The largest `WakeThreshold=`, in bytes: a pipe has this size by default (pipe(7)), and a TCP socket accepts about as much
/// before it slows its peer down (tcp_rmem, tcp(7)). More would never be reached.
private let largestWakeThreshold: UInt64 = 64 << 10

private func parseIdleTime(_ text: String) -> Duration? {
    guard let time = parseTimeSpan(text) else { return nil }
    let idle = time ?? longestTimeSpan
    return idle >= shortestIdleTime ? idle : nil
}

private func parsePulseTime(_ text: String) -> Duration? {
    guard let time = parseTimeSpan(text) else { return nil }
    let pulse = time ?? longestTimeSpan
    return pulse >= .seconds(1) ? pulse : nil
}

/// Parses a percentage with at most one decimal.
///
/// - Returns: thousandths; `nil` if the text is invalid or 0.
private func parseProcessorShare(_ text: String) -> Int? {
    parsePermyriad(text).flatMap { $0 > 0 && $0 % 10 == 0 ? $0 / 10 : nil }
}

/// Parses a size, and optionally a time span after a blank: `64`, `1K`, `64 30s`.
private func parseWakeThreshold(_ text: String) -> AppPolicy.WakeThreshold? {
    let bytes = Array(text.utf8)[...]
    let size = bytes.prefix { !isBlank($0) }
    guard let count = parseSize(String(decoding: size, as: UTF8.self)), count >= 1, count <= largestWakeThreshold else {
        return nil
    }
    let rest = bytes[size.endIndex...].drop(while: isBlank)
    guard !rest.isEmpty else { return AppPolicy.WakeThreshold(bytes: count) }
    guard let time = parseTimeSpan(String(decoding: rest, as: UTF8.self)), time != .zero else { return nil }
    return AppPolicy.WakeThreshold(bytes: count, time: time)
}
