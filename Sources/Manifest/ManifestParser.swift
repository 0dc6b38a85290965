package import LifecycleCore

/// Reads an app's manifest and its drop-ins, in that order: what comes later wins.
///
/// - Returns: no manifest where there is an error; then the diagnostics say which.
package func parseManifest(id: AppID, sources: [SourceFile]) -> (AppManifest?, [Diagnostic]) {
    var findings = Findings()
    var manifest = AppManifest(id: id)
    let reader = SettingsReader(settings: AppManifest.settings)
    for source in sources {
        reader.read(UnitFileReader.read(source, &findings), into: &manifest, &findings)
    }
    let file = sources.first?.path ?? id.name
    manifest.check(file, &findings)
    return (findings.hasErrors ? nil : manifest, findings.finished(file))
}

/// Reads `greenroom.conf` and its drop-ins.
package func parseConfiguration(sources: [SourceFile]) -> (ManagerConfiguration?, [Diagnostic]) {
    var findings = Findings()
    var configuration = ManagerConfiguration()
    let reader = SettingsReader(settings: ManagerConfiguration.settings)
    for source in sources {
        reader.read(UnitFileReader.read(source, &findings), into: &configuration, &findings)
    }
    return (findings.hasErrors ? nil : configuration, findings.finished(sources.first?.path ?? "greenroom.conf"))
}

extension AppManifest {
    /// What only the whole can tell.
    fileprivate func check(_ file: String, _ findings: inout Findings) {
        func add(_ severity: Diagnostic.Severity, _ message: String) {
            findings.add(Diagnostic(severity, file, line: 0, column: 0, message))
        }
        if exec.isEmpty, !findings.hasErrors { add(.error, "has no ExecStart= in [App]") }
        if let time = policy.backgroundTime, policy.expirationNotice > time {
            add(
                .warning,
                "ExpirationNoticeSec= is longer than BackgroundTimeSec=: tasks are warned as soon as they can be")
        }
        if memoryMax != nil || suspendedMemoryMax != nil {
            add(
                .warning,
                "MemoryMax= and SuspendedMemoryMax= are not enforced yet; MemoryHigh= counts in jetsam's order")
        }
        if !listenStream.isEmpty { add(.warning, "[Wake] is not acted on yet") }
        if group != nil, user == nil { add(.warning, "Group= without User= changes the group alone") }
    }

    static var settings: [Setting<AppManifest>] { appSettings + lifecycleSettings + signalSettings + memorySettings }

    private static var appSettings: [Setting<AppManifest>] {
        [
            .value("App", "Name", "1 to 256 bytes", \.name) { (1...256).contains($0.utf8.count) ? $0 : nil },
            Setting("App", "ExecStart", "an absolute path, and arguments") { $0.takeExec($1) },
            .value("App", "Type", "simple or notify", \.policy.readiness) {
                ["simple": AppPolicy.Readiness.executed, "notify": .notified][$0]
            },
            .value("App", "User", "a user's name or number", \.user) { isAccountName($0) ? $0 : nil },
            .value("App", "Group", "a group's name or number", \.group) { isAccountName($0) ? $0 : nil },
            .list(
                "App", "SupplementaryGroups", "groups' names or numbers", \.supplementaryGroups, maximum: 64,
                isAccountName),
            .value("App", "WorkingDirectory", "an absolute path, or ~", \.workingDirectory) {
                $0 == "~" || ($0.hasPrefix("/") && $0.utf8.count < 4096) ? $0 : nil
            },
            .list("App", "Environment", "NAME=value", \.environment, maximum: 1024, isEnvironmentEntry),
            .list("App", "StateDirectory", "relative paths without ..", \.stateDirectory, maximum: 32, isFolderName),
            .list("App", "CacheDirectory", "relative paths without ..", \.cacheDirectory, maximum: 32, isFolderName),
            .list(
                "App", "RuntimeDirectory", "relative paths without ..", \.runtimeDirectory, maximum: 32, isFolderName),
            .value("App", "UMask", "an octal number up to 0777", \.umask) {
                UInt32($0, radix: 8).flatMap { $0 <= 0o777 ? $0 : nil }
            },
            .value("App", "OOMScoreAdjust", "a number from -1000 to 1000", \.oomScoreAdjust) { text in
                Int(text).flatMap { (-1000...1000).contains($0) ? $0 : nil }
            },
            .flag("App", "NoNewPrivileges", \.noNewPrivileges),
            .value("App", "LaunchAtStart", "no, foreground or background", \.policy.launchAtStart) {
                text -> LaunchState?? in
                switch text {
                case "foreground": .some(.foreground)
                case "background": .some(.background)
                default: parseBoolean(text) == false ? .some(nil) : nil
                }
            },
            .value("App", "Relaunch", "no, on-failure or always", \.policy.relaunch) {
                ["no": AppPolicy.Relaunch.no, "on-failure": .onFailure, "always": .always][$0]
            },
        ] + limitSettings
    }

    /// setrlimit(2)'s numbers on Linux.
    private static var limitSettings: [Setting<AppManifest>] {
        [
            ("CPU", 0), ("FSIZE", 1), ("DATA", 2), ("STACK", 3), ("CORE", 4), ("NPROC", 6), ("NOFILE", 7),
            ("MEMLOCK", 8),
            ("AS", 9),
        ].map { name, resource in
            Setting("App", "Limit\(name)", "a number or size, or soft:hard, or infinity") { manifest, text in
                let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { part -> UInt64? in
                    part == "infinity" ? .max : parseSize(String(part))
                }
                guard (1...2).contains(parts.count), let soft = parts[0], let hard = parts.last ?? nil, soft <= hard
                else {
                    return ""
                }
                manifest.limits.removeAll { $0.resource == resource }
                manifest.limits.append(ResourceLimitSetting(resource: Int32(resource), soft: soft, hard: hard))
                return nil
            }
        }
    }

    private static var lifecycleSettings: [Setting<AppManifest>] {
        [
            .time("Lifecycle", "LaunchDeadlineSec", \.policy.launchDeadline),
            .time("Lifecycle", "BackgroundDeadlineSec", \.policy.backgroundDeadline),
            .time("Lifecycle", "TerminateDeadlineSec", \.policy.terminateDeadline),
            .time("Lifecycle", "ExtendedDeadlineMaxSec", \.policy.extendedDeadlineMax),
            .time("Lifecycle", "BackgroundTimeSec", \.policy.backgroundTime),
            .finiteTime("Lifecycle", "ExpirationNoticeSec", \.policy.expirationNotice),
            .finiteTime("Lifecycle", "SuspendDelaySec", \.policy.suspendDelay),
            .time("Lifecycle", "WatchdogSec", \.policy.watchdog),
            .flag("Lifecycle", "ExitsOnSuspend", \.policy.exitsOnSuspend),
            .flag("Lifecycle", "ProtectedData", \.policy.usesProtectedData),
            Setting("Lifecycle", "BackgroundModes", "of " + BackgroundModes.named.map(\.name).joined(separator: ", ")) {
                manifest, text in
                if text.isEmpty { manifest.policy.backgroundModes = [] }
                for word in text.split(whereSeparator: { $0 == " " || $0 == "\t" }) {
                    guard let mode = BackgroundModes.named.first(where: { $0.name == word })?.mode else { return "" }
                    manifest.policy.backgroundModes.insert(mode)
                }
                return nil
            },
        ]
    }

    private static var signalSettings: [Setting<AppManifest>] {
        [
            signal("ResignActive", \.signals.resignActive), signal("BecomeActive", \.signals.becomeActive),
            signal("EnterBackground", \.signals.enterBackground), signal("EnterForeground", \.signals.enterForeground),
            signal("MemoryWarning", \.signals.memoryWarning), signal("TaskExpiring", \.signals.taskExpiring),
            .value("Signals", "Terminate", "a signal such as SIGTERM", \.signals.terminate, parseCatchable),
        ]
    }

    private static func signal(_ key: String, _ path: WritableKeyPath<AppManifest, Int32?>) -> Setting<AppManifest> {
        .value("Signals", key, "a signal that can be caught, such as SIGUSR1 or SIGRTMIN+1, or none", path) {
            text -> Int32?? in
            text == "none" || text.isEmpty ? .some(nil) : parseCatchable(text).map { .some($0) }
        }
    }

    private static var memorySettings: [Setting<AppManifest>] {
        [
            .number("Memory", "JetsamPriority", -1000...1000, \.policy.jetsamPriority),
            .size("Memory", "MemoryMax", \.memoryMax), .size("Memory", "MemoryHigh", \.policy.memoryHigh),
            .size("Memory", "SuspendedMemoryMax", \.suspendedMemoryMax),
            .size("Memory", "SuspendedMemoryHigh", \.policy.suspendedMemoryHigh),
            .list("Wake", "ListenStream", "a port, address:port, or absolute path", \.listenStream, maximum: 64) {
                isSocket($0)
            },
        ]
    }

    /// `ExecStart=`: one program. systemd's prefixes and specifiers are refused rather than passed on as part of a name.
    private mutating func takeExec(_ text: String) -> String? {
        if text.isEmpty {
            exec = []
            return nil
        }
        let words: [String]
        do throws(WordError) { words = try splitWords(text) } catch { return error.message }
        guard let program = words.first else { return "" }
        if let prefix = program.first, "-@:+!|".contains(prefix) {
            return "the prefix “\(prefix)” is not known here; expected an absolute path"
        }
        guard program.hasPrefix("/"), program.utf8.count < 4096 else {
            return "“\(shown(program))” is no absolute path"
        }
        guard exec.isEmpty else { return "there is one already; an empty ExecStart= before it begins anew" }
        var result: [String] = []
        for word in words {
            switch expanded(word) {
            case .success(let text): result.append(text)
            case .failure(let problem): return problem.message
            }
        }
        exec = result
        return nil
    }
}

extension ManagerConfiguration {
    static var settings: [Setting<ManagerConfiguration>] {
        [
            .number("Manager", "ForegroundLimit", 1...1000, \.policy.foregroundLimit),
            .size("Memory", "Budget", \.policy.budget),
            .value("Memory", "JetsamOrder", "largest or lru", \.policy.jetsamOrder) {
                ["largest": ManagerPolicy.JetsamOrder.largest, "lru": .lru][$0]
            },
            .value("Memory", "WarningAvailable", "a size or a percentage", \.policy.warningAvailable, parseAmount),
            .value("Memory", "CriticalAvailable", "a size or a percentage", \.policy.criticalAvailable, parseAmount),
            pressure("WarningPressure", \.warningPressure), pressure("CriticalPressure", \.criticalPressure),
        ]
    }

    private static func pressure(
        _ key: String, _ path: WritableKeyPath<ManagerConfiguration, PressureThreshold?>
    ) -> Setting<ManagerConfiguration> {
        .value("Memory", key, "off, or a part of the time such as “some 7%” or “full 10%”", path) {
            text -> PressureThreshold?? in
            if text == "off" || text == "infinity" { return .some(nil) }
            let words = text.split(separator: " ")
            guard (1...2).contains(words.count), let last = words.last, let percent = parsePercent(String(last)),
                (1...99).contains(percent)
            else { return nil }
            let kind = words.count == 1 ? .some : PressureThreshold.Kind(rawValue: String(words[0]))
            return kind.map { .some(PressureThreshold($0, percent: percent)) }
        }
    }
}
