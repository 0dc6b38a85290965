import LifecycleCore

/// The settings about processor time in the background (L44).
extension AppManifest {
    static var processorSettings: [Setting<AppManifest>] {
        [
            .value("Lifecycle", "BackgroundCPU", "kill, throttle or ignore", \.policy.backgroundCPU) {
                // The return type is explicit: with one Optional level less, an invalid word would mean "not set".
                text -> AppPolicy.BackgroundCPU?? in
                AppPolicy.BackgroundCPU(rawValue: text).map { .some($0) }
            },
            .value(
                "Lifecycle", "BackgroundCPULimit",
                "a percentage of one processor from 1% to 100000% such as 80% or 250%",
                \.policy.backgroundCPULimit, parseProcessorLimit),
            .value(
                "Lifecycle", "BackgroundCPUSec", "a time span of at least 1s such as 60s, 5min or infinity",
                \.policy.backgroundCPUTime, parsePeriod),
        ]
    }

    /// Warns of settings that have no effect.
    func checkProcessor(
        _ reader: SettingsReader<AppManifest>, _ file: String, _ diagnostics: inout DiagnosticList
    ) {
        guard policy.backgroundCPUAction == .ignore else { return }
        for key in ["BackgroundCPULimit", "BackgroundCPUSec"] where reader.assignedKeys.contains(key) {
            diagnostics.warn(
                reader.locations[key] ?? .whole(file), "\(key)= has no effect: BackgroundCPU=ignore")
        }
    }
}

/// The shortest `BackgroundCPUSec=`: the app is measured six times in it.
private let shortestPeriod = Duration.seconds(1)

private func parsePeriod(_ text: String) -> Duration? {
    guard let time = parseTimeSpan(text) else { return nil }
    let period = time ?? longestTimeSpan
    return period >= shortestPeriod ? period : nil
}

/// Parses a percentage of one processor, which can be more than 100%, as in `CPUQuota=` (systemd.resource-control(5)). The least is
/// 1%, because the kernel accepts no quota below 1 ms of 100 ms.
///
/// - Returns: thousandths of one processor.
private func parseProcessorLimit(_ text: String) -> Int? {
    guard text.utf8.last == UInt8(ascii: "%"),
        let percent = parseNumber(String(text.dropLast()), in: 1...(AppPolicy.largestBackgroundCPULimit / 10))
    else { return nil }
    return percent * 10
}
