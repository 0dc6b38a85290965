package import LifecycleCore

/// More files than an app's folder has for any good reason. With `SourceFile.maximumSize` it bounds what reading costs.
package let maximumSources = 101

/// Reads an app's manifest and its drop-ins, in that order: what comes later wins.
///
/// - Parameter memory: the machine's, in bytes, which percentages are of; `nil`: nobody knows, so they are refused.
/// - Returns: no manifest where there is an error; then the diagnostics say which.
package func parseManifest(id: AppID, sources: [SourceFile], memory: UInt64?) -> (AppManifest?, [Diagnostic]) {
    let settings = AppManifest.settings(memory: memory)
    return parse(sources, settings, AppManifest(id: id), file: id.name) { $0.check($1, $2, &$3) }
}

/// Reads `greenroom.conf` and its drop-ins.
///
/// - Parameter memory: as for manifests.
package func parseConfiguration(sources: [SourceFile], memory: UInt64?) -> (ManagerConfiguration?, [Diagnostic]) {
    let settings = ManagerConfiguration.settings(memory: memory)
    return parse(sources, settings, ManagerConfiguration(), file: "greenroom.conf") { $0.check($1, memory, &$3) }
}

/// - Parameters:
///   - file: what to name where there is none.
///   - check: what only the whole can tell; it gets the file to name for it.
private func parse<Values>(
    _ sources: [SourceFile], _ settings: [Setting<Values>], _ defaults: Values, file: String,
    check: (Values, SettingsReader<Values>, String, inout Findings) -> Void
) -> (Values?, [Diagnostic]) {
    var findings = Findings()
    let file = sources.first?.path ?? file
    guard sources.count <= maximumSources else {
        findings.error(.whole(file), "has \(sources.count - 1) drop-ins; at most \(maximumSources - 1) are read")
        return (nil, findings.finished(file))
    }
    var values = defaults
    var reader = SettingsReader(settings, defaults: defaults)
    for source in sources { reader.read(source, into: &values, &findings) }
    check(values, reader, file, &findings)
    return (findings.hasErrors ? nil : values, findings.finished(file))
}

extension AppManifest {
    fileprivate func check(_ reader: SettingsReader<AppManifest>, _ file: String, _ findings: inout Findings) {
        func place(_ key: String) -> Place { reader.places[key] ?? .whole(file) }
        // Where it was refused, may stand on a line that is none, or be what an unknown key meant, that has been said; but
        // an app without a program has an error in any case.
        let isToldOf = reader.isGarbled || reader.hasUnknownKeys || reader.refused.contains("ExecStart")
        if exec.isEmpty, !isToldOf || !findings.hasErrors {
            findings.error(place("ExecStart"), "has no ExecStart= in [App]; expected the program and its arguments")
        }
        if let time = policy.backgroundTime, policy.expirationNotice > time {
            findings.warn(
                place(reader.places["ExpirationNoticeSec"] == nil ? "BackgroundTimeSec" : "ExpirationNoticeSec"),
                "ExpirationNoticeSec= is longer than BackgroundTimeSec=: tasks are warned as soon as they can be")
        }
        for (key, limit) in [("MemoryMax", memoryMax), ("SuspendedMemoryMax", suspendedMemoryMax)] where limit != nil {
            findings.warn(place(key), "\(key)= is not enforced yet; MemoryHigh= counts in jetsam's order")
        }
        if !listenStream.isEmpty { findings.warn(place("ListenStream"), "[Wake] is not acted on yet") }
        if group != nil, user == nil {
            findings.warn(place("Group"), "Group= without User= changes the group alone")
        }
    }
}

extension ManagerConfiguration {
    fileprivate func check(
        _ reader: SettingsReader<ManagerConfiguration>, _ memory: UInt64?, _ findings: inout Findings
    ) {
        guard let memory, let place = reader.places["CriticalAvailable"] ?? reader.places["WarningAvailable"],
            policy.criticalAvailable.bytes(of: memory) > policy.warningAvailable.bytes(of: memory)
        else { return }
        findings.warn(place, "CriticalAvailable= is more than WarningAvailable=: it is critical before it is a warning")
    }
}
