package import LifecycleCore

/// The number of files that one parse accepts: a manifest and 100 drop-ins. Together with `SourceFile.maximumSize` it
/// bounds the cost of a parse.
package let maximumSources = 101

/// Parses an app's manifest and its drop-ins. Later files override earlier ones.
///
/// - Parameters:
///   - sources: the manifest, then its drop-ins in their order.
///   - memory: the machine's memory in bytes, the base of percentages. `nil` if it could not be read; percentages are then
///     errors.
///   - specifiers: the values of the specifiers that are the same for all apps.
/// - Returns: the manifest, or `nil` if there is an error, and all diagnostics.
package func parseManifest(
    id: AppID, sources: [SourceFile], memory: UInt64?, specifiers: SpecifierValues
) -> (AppManifest?, [Diagnostic]) {
    let settings = AppManifest.settings(memory: memory, Specifiers(id: id, values: specifiers))
    let (parsed, diagnostics) = parse(sources, settings, AppManifest(id: id), file: id.name) { $0.check($1, $2, &$3) }
    var manifest = parsed
    manifest?.resolveDefaults()
    return (manifest, diagnostics)
}

/// The section of a manifest in which a key stands; `nil`: there is no such key.
package func manifestSection(ofKey key: String) -> String? {
    guard let id = AppID("app") else { return nil }
    return AppManifest.settings(memory: nil, Specifiers(id: id, values: SpecifierValues()))
        .first { $0.key == key }?.section
}

/// Parses `greenroom.conf` and its drop-ins. Later files override earlier ones.
///
/// - Parameter memory: the machine's memory in bytes, as in `parseManifest`.
/// - Returns: the configuration, or `nil` if there is an error, and all diagnostics.
package func parseConfiguration(sources: [SourceFile], memory: UInt64?) -> (ManagerConfiguration?, [Diagnostic]) {
    let settings = ManagerConfiguration.settings(memory: memory)
    return parse(sources, settings, ManagerConfiguration(), file: "greenroom.conf") { $0.check($1, memory, &$3) }
}

/// - Parameters:
///   - file: the name for diagnostics if `sources` is empty.
///   - check: checks that need all values. Its third argument is the file that diagnostics name by default.
private func parse<Values>(
    _ sources: [SourceFile], _ settings: [Setting<Values>], _ defaults: Values, file: String,
    check: (Values, SettingsReader<Values>, String, inout DiagnosticList) -> Void
) -> (Values?, [Diagnostic]) {
    var diagnostics = DiagnosticList()
    let file = sources.first?.path ?? file
    guard sources.count <= maximumSources else {
        diagnostics.error(
            .whole(file), "too many drop-ins: \(sources.count - 1); expected at most \(maximumSources - 1)")
        return (nil, diagnostics.finished(file))
    }
    var values = defaults
    var reader = SettingsReader(settings, defaults: defaults)
    for source in sources { reader.read(source, into: &values, &diagnostics) }
    check(values, reader, file, &diagnostics)
    return (diagnostics.hasErrors ? nil : values, diagnostics.finished(file))
}

extension AppManifest {
    fileprivate func check(
        _ reader: SettingsReader<AppManifest>, _ file: String, _ diagnostics: inout DiagnosticList
    ) {
        func location(_ key: String) -> Location { reader.locations[key] ?? .whole(file) }
        // A missing ExecStart= is not reported a second time if an earlier diagnostic may be about it: an invalid value, an
        // invalid line or an unknown key. A manifest without a program always has an error, though.
        let mayBeReported = reader.hasInvalidLines || reader.hasUnknownKeys || reader.invalidKeys.contains("ExecStart")
        if exec.isEmpty, !mayBeReported || !diagnostics.hasErrors {
            diagnostics.error(
                location("ExecStart"),
                "missing key 'ExecStart' in section [App]; expected the absolute path of a program and its arguments")
        }
        if policy.readiness == .forked, self.pidFile == nil, !reader.invalidKeys.contains("PIDFile") {
            diagnostics.error(
                location("Type"), "Type=forking requires PIDFile=, the path of a file with the pid of the main process")
        }
        if let problem = readOnlyProblem { diagnostics.error(location("ReadOnlyProgram"), problem) }
        if let time = policy.backgroundTime, policy.expirationNotice > time {
            let key = reader.locations["ExpirationNoticeSec"] == nil ? "BackgroundTimeSec" : "ExpirationNoticeSec"
            diagnostics.warn(
                location(key),
                "ExpirationNoticeSec= exceeds BackgroundTimeSec=; tasks are notified when the background time starts")
        }
        if self.notifyAccess == .none, effectiveNotifyAccess != .none {
            diagnostics.warn(
                location("NotifyAccess"),
                "NotifyAccess=none has the effect of NotifyAccess=main, because Type=notify needs READY=1")
        }
        if self.group != nil, self.user == nil {
            diagnostics.warn(location("Group"), "Group= is set without User=; only the group is changed")
        }
        checkWaking(reader, file, &diagnostics)
        checkTimers(reader, file, &diagnostics)
        checkNotifications(reader, file, &diagnostics)
        checkModes(reader, file, &diagnostics)
        checkProcessor(reader, file, &diagnostics)
        checkSockets(reader, file, &diagnostics)
    }
}

extension ManagerConfiguration {
    fileprivate func check(
        _ reader: SettingsReader<ManagerConfiguration>, _ memory: UInt64?, _ diagnostics: inout DiagnosticList
    ) {
        if (self.protectedDirectory == nil) != self.protectedKeyCommand.isEmpty, !diagnostics.hasErrors,
            let location = reader.locations["ProtectedDirectory"] ?? reader.locations["ProtectedKeyCommand"]
        {
            diagnostics.error(location, "ProtectedDirectory= and ProtectedKeyCommand= require each other")
        }
        guard let memory,
            let location = reader.locations["CriticalAvailable"] ?? reader.locations["WarningAvailable"],
            policy.hasReversedThresholds(of: memory)
        else { return }
        diagnostics.warn(
            location,
            "CriticalAvailable= exceeds WarningAvailable=; apps are warned when the critical level is reached")
    }
}
