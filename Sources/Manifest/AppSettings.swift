import LifecycleCore

/// The table of settings of a manifest.
extension AppManifest {
    /// - Parameter memory: the machine's memory in bytes, or `nil` if unknown.
    static func settings(memory: UInt64?, _ specifiers: Specifiers) -> [Setting<AppManifest>] {
        programSettings(specifiers) + accountSettings(specifiers) + directorySettings(specifiers) + limitSettings
            + notificationSettings(specifiers) + lifecycleSettings + hookSettings(specifiers)
            + releaseSettings(specifiers)
            + programFileSettings
            + idleSettings
            + processorSettings + signalSettings
            + memorySettings(memory)
            + wakeSettings + timerSettings(specifiers) + deviceSettings(specifiers) + socketSettings(specifiers)
    }

    private static func programSettings(_ specifiers: Specifiers) -> [Setting<AppManifest>] {
        [
            .value("App", "Name", "1 to 256 bytes without control characters", \.name) {
                text throws(ValueError) -> String? in
                let name = try specifiers.expandedForDisplay(text)
                return isDisplayName(name) ? name : nil
            },
            Setting(
                section: "App", key: "ExecStart", expected: "the absolute path of a program and its arguments",
                apply: { manifest, text throws(ValueError) in try manifest.applyCommand(text, specifiers) },
                reset: { manifest, _ in (manifest.exec, manifest.commandWords) = ([], [:]) }),
            .value("App", "Type", "simple, exec, notify, forking or listening", \.policy.readiness) {
                text throws(ValueError) -> AppPolicy.Readiness? in
                if text == "oneshot" {
                    throw ValueError(
                        problem: "'oneshot' is not supported: an app has a main process as long as it runs")
                }
                return [
                    "simple": AppPolicy.Readiness.executed, "exec": .executed, "notify": .notified, "forking": .forked,
                    "listening": .listening,
                ][text]
            },
            .value("App", "PIDFile", "a normalized path, absolute or below /run", \.pidFile) {
                text throws(ValueError) -> String?? in
                let path = try specifiers.expanded(text)
                let absolute = path.hasPrefix("/") ? path : "/run/" + path
                return isNormalizedPath(absolute) ? .some(absolute) : nil
            },
            .time("App", "StartupSec", \.policy.startUpTime),
            .list(
                "App", "Environment", "assignments such as NAME=value", \.environment, maximum: 1024, specifiers
            ) { isEnvironmentEntry($0) ? $0 : nil },
            environmentFile(specifiers),
            .value("App", "OOMScoreAdjust", "a number from -1000 to 1000", \.oomScoreAdjust) {
                // The return type is explicit: with one Optional level less, an invalid number would mean "not set".
                text -> Int?? in
                parseNumber(text, in: -1000...1000).map { .some($0) }
            },
            .flag("App", "NoNewPrivileges", \.noNewPrivileges), .flag("App", "IgnoreSIGPIPE", \.ignoresSIGPIPE),
            urlSchemes(specifiers),
            .value("App", "NotifyAccess", "none, main, exec or all", \.notifyAccess) { NotifyAccess(rawValue: $0) },
            .value("App", "LaunchAtStart", "no, foreground or background", \.policy.launchAtStart) {
                text -> LaunchState?? in
                switch text {
                case "foreground": .some(.foreground)
                case "background": .some(.background)
                default: parseBoolean(text) == false ? .some(nil) : nil
                }
            },
            .value("App", "KillMode", "control-group, mixed or process", \.policy.killMode) {
                AppPolicy.KillMode(rawValue: $0)
            },
            .value("App", "WindowAppID", "1 to 256 bytes without control characters", \.windowAppID) {
                text throws(ValueError) -> String?? in
                let name = try specifiers.expanded(text)
                return isDisplayName(name) ? .some(name) : nil
            },
            // sd_seat_can_graphical(3): the names of logind.
            .value(
                "App", "Seat", "the name of a seat, such as seat0: \"seat\" and letters, digits, _ or -", \.policy.seat
            ) { text -> String?? in
                guard isSeatName(text) else { return nil }
                return .some(text == "seat0" ? nil : text)
            },
            .value("App", "Role", "app, home or worker", \.policy.role) { AppPolicy.Role(rawValue: $0) },
            .value("App", "Relaunch", "no, on-failure or always", \.policy.relaunch) {
                ["no": AppPolicy.Relaunch.no, "on-failure": .onFailure, "always": .always][$0]
            },
        ]
    }

    private static func accountSettings(_ specifiers: Specifiers) -> [Setting<AppManifest>] {
        [
            account("App", "User", "a user name or UID", \.user, specifiers),
            account("App", "Group", "a group name or GID", \.group, specifiers),
            .list(
                "App", "SupplementaryGroups", "group names or GIDs", \.supplementaryGroups, maximum: 64, specifiers
            ) { isAccountName($0) ? $0 : nil },
        ]
    }

    static func account(
        _ section: String, _ key: String, _ expected: String, _ path: WritableKeyPath<AppManifest, String?>,
        _ specifiers: Specifiers
    ) -> Setting<AppManifest> {
        .value(section, key, expected, path) { text throws(ValueError) -> String?? in
            let name = try specifiers.expanded(text)
            return isAccountName(name) ? .some(name) : nil
        }
    }

    private static func directorySettings(_ specifiers: Specifiers) -> [Setting<AppManifest>] {
        [
            .value("App", "WorkingDirectory", "a normalized absolute path, or ~", \.workingDirectory) {
                text throws(ValueError) -> String?? in
                let path = try specifiers.expanded(text)
                return path == "~" || isNormalizedPath(path) ? .some(path) : nil
            },
            directories("StateDirectory", \.stateDirectory, specifiers),
            directories("CacheDirectory", \.cacheDirectory, specifiers),
            directories("RuntimeDirectory", \.runtimeDirectory, specifiers),
            output("StandardOutput", \.standardOutput, specifiers),
            output("StandardError", \.standardError, specifiers),
            .value("App", "UMask", "an octal number up to 0777", \.umask) { parseOctal($0, upTo: 0o777) },
        ]
    }

    private static func environmentFile(_ specifiers: Specifiers) -> Setting<AppManifest> {
        Setting(
            section: "App", key: "EnvironmentFile", expected: "a normalized absolute path, with - if it may be missing"
        ) {
            manifest, text throws(ValueError) in
            let isOptional = text.utf8.first == UInt8(ascii: "-")
            let path = try specifiers.expanded(isOptional ? String(text.dropFirst()) : text)
            guard isNormalizedPath(path) else { throw ValueError() }
            guard manifest.environmentFiles.count < 64 else { throw ValueError(problem: "more than 64 files") }
            manifest.environmentFiles.append(EnvironmentFile(path: path, isOptional: isOptional))
        } reset: { manifest, _ in
            manifest.environmentFiles = []
        }
    }

    private static func output(
        _ key: String, _ path: WritableKeyPath<AppManifest, OutputTarget>, _ specifiers: Specifiers
    ) -> Setting<AppManifest> {
        .value("App", key, "journal, inherit, null, file:PATH or append:PATH", path) {
            text throws(ValueError) -> OutputTarget? in
            let words: [String: OutputTarget] = ["journal": .journal, "inherit": .inherit, "null": .null]
            if let word = words[text] { return word }
            for (prefix, target) in [("file:", OutputTarget.file), ("append:", OutputTarget.append)]
            where text.hasPrefix(prefix) {
                let file = try specifiers.expanded(String(text.dropFirst(prefix.count)))
                guard isNormalizedPath(file), file != "/" else { return nil }
                return target(file)
            }
            return nil
        }
    }

    private static func directories(
        _ key: String, _ path: WritableKeyPath<AppManifest, [String]>, _ specifiers: Specifiers
    ) -> Setting<AppManifest> {
        .list("App", key, "relative directory names without '..'", path, maximum: 32, specifiers, directoryName)
    }

    /// The limits of setrlimit(2), with their numbers on Linux.
    private static var limitSettings: [Setting<AppManifest>] {
        [
            limit("CPU", 0, "a time span such as 30s", parseSeconds),
            limit("FSIZE", 1, "a size such as 64M", parseSize), limit("DATA", 2, "a size such as 64M", parseSize),
            limit("STACK", 3, "a size such as 64M", parseSize), limit("CORE", 4, "a size such as 64M", parseSize),
            limit("NPROC", 6, "a number", parseCount), limit("NOFILE", 7, "a number", parseCount),
            limit("MEMLOCK", 8, "a size such as 64M", parseSize), limit("AS", 9, "a size such as 64M", parseSize),
        ]
    }

    private static func limit(
        _ name: String, _ resource: Int32, _ expected: String, _ parse: @escaping (String) -> UInt64?
    ) -> Setting<AppManifest> {
        Setting(section: "App", key: "Limit\(name)", expected: "\(expected), infinity, or two values as soft:hard") {
            manifest, text throws(ValueError) in
            guard let (soft, hard) = parseLimits(text, parse) else { throw ValueError() }
            manifest.limits.removeAll { $0.resource == resource }
            manifest.limits.append(ResourceLimitSetting(resource: resource, soft: soft, hard: hard))
        } reset: { manifest, _ in
            manifest.limits.removeAll { $0.resource == resource }
        }
    }

    private static var lifecycleSettings: [Setting<AppManifest>] {
        [
            .time("Lifecycle", "LaunchDeadlineSec", \.policy.launchDeadline),
            .time("Lifecycle", "BackgroundDeadlineSec", \.policy.backgroundDeadline),
            .time("Lifecycle", "TerminateDeadlineSec", \.policy.terminateDeadline),
            .time("Lifecycle", "ExtendedDeadlineMaxSec", \.policy.extendedDeadlineMax),
            .time("Lifecycle", "BackgroundTimeSec", \.policy.backgroundTime),
            .time("Lifecycle", "BackgroundTimePerHourSec", \.policy.backgroundTimePerHour),
            .time("Lifecycle", "TaskProgressSec", \.policy.taskProgressTime),
            .finiteTime("Lifecycle", "ExpirationNoticeSec", \.policy.expirationNotice),
            .longTime("Lifecycle", "SuspendDelaySec", \.policy.suspendDelay),
            // 0 disables the watchdog, as in systemd.service(5).
            .value("Lifecycle", "WatchdogSec", "a time span such as 5s, 1min 30s or infinity", \.policy.watchdog) {
                parseTimeSpan($0).map { $0 == .zero ? nil : $0 }
            },
            .value("Lifecycle", "Suspend", "yes, no or dry-run", \.policy.suspension) { text in
                AppPolicy.Suspension(rawValue: text) ?? parseBoolean(text).map { $0 ? .yes : .no }
            },
            .value("Lifecycle", "ReclaimOnSuspend", "auto, yes or no", \.policy.reclaim) { text in
                AppPolicy.Reclaim(rawValue: text) ?? parseBoolean(text).map { $0 ? .yes : .no }
            },
            .flag("Lifecycle", "ExitsOnSuspend", \.policy.exitsOnSuspend),
            .flag("Lifecycle", "Essential", \.policy.isEssential),
            .value("Lifecycle", "TerminateSuspended", "auto, notify or kill", \.policy.terminateSuspended) {
                AppPolicy.TerminateSuspended(rawValue: $0)
            },
            .flag("Lifecycle", "ProtectedData", \.policy.usesProtectedData),
            .value("Lifecycle", "SnapshotPrivacy", "none or hidden", \.policy.hidesSnapshot) { text in
                text == "hidden" ? true : text == "none" ? false : nil
            },
            .flag("Lifecycle", "SnapshotPersistent", \.keepsSnapshot),
            .value("Lifecycle", "Notices", "banner, alert or none", \.notices) { NoticeStyle(rawValue: $0) },
            Setting(
                section: "Lifecycle", key: "SceneRoles", expected: "external, panel or both",
                apply: { manifest, text throws(ValueError) in try manifest.applySceneRoles(text) },
                reset: { manifest, _ in manifest.sceneRoles = [] }),
            Setting(
                section: "Lifecycle", key: "BackgroundModes",
                expected: "one or more of " + BackgroundModes.named.map(\.name).joined(separator: ", "),
                apply: { manifest, text throws(ValueError) in try manifest.applyModes(text) },
                reset: { manifest, _ in (manifest.policy.backgroundModes, manifest.hasFormerMode) = ([], false) }),
        ]
    }

    private static func hookSettings(_ specifiers: Specifiers) -> [Setting<AppManifest>] {
        HookKind.allCases.map { kind in
            Setting(
                section: "Lifecycle", key: kind.rawValue, expected: "the absolute path of a program and its arguments",
                apply: { manifest, text throws(ValueError) in try manifest.applyHook(kind, text, specifiers) },
                reset: { manifest, _ in manifest.resetHook(kind) })
        }
    }

    private mutating func applySceneRoles(_ text: String) throws(ValueError) {
        for word in plainWords(text) {
            guard let role = SceneRole(rawValue: word.text), role != .window else {
                throw ValueError.invalid(word.text, offset: word.offset)
            }
            self.sceneRoles.insert(role)
        }
    }

    /// What the mode `call` was called.
    private static let formerCall = "voip"

    /// Warns of a mode that has another name now.
    func checkModes(_ reader: SettingsReader<AppManifest>, _ file: String, _ diagnostics: inout DiagnosticList) {
        guard self.hasFormerMode else { return }
        diagnostics.warn(
            reader.locations["BackgroundModes"] ?? .whole(file),
            "BackgroundModes=\(Self.formerCall) is now BackgroundModes=call, and means the same")
    }

    private mutating func applyModes(_ text: String) throws(ValueError) {
        for word in plainWords(text) {
            let isFormer = word.text == Self.formerCall
            guard let mode = BackgroundModes(named: isFormer ? "call" : word.text) else {
                throw ValueError.invalid(word.text, offset: word.offset)
            }
            if isFormer { self.hasFormerMode = true }
            policy.backgroundModes.insert(mode)
        }
    }

    private static var signalSettings: [Setting<AppManifest>] {
        [
            signal("ResignActive", \.signals.resignActive), signal("BecomeActive", \.signals.becomeActive),
            signal("EnterBackground", \.signals.enterBackground), signal("EnterForeground", \.signals.enterForeground),
            signal("MemoryWarning", \.signals.memoryWarning), signal("TaskExpiring", \.signals.taskExpiring),
            signal("Notification", \.signals.notification),
            .value(
                "Signals", "Terminate", "a signal that can be caught such as SIGTERM", \.signals.terminate,
                parseCatchable),
        ]
    }

    private static func signal(_ key: String, _ path: WritableKeyPath<AppManifest, Int32?>) -> Setting<AppManifest> {
        .value("Signals", key, "a signal that can be caught such as SIGUSR1 or SIGRTMIN+1, or none", path) {
            text -> Int32?? in
            text == "none" ? .some(nil) : parseCatchable(text).map { .some($0) }
        }
    }

    private static func memorySettings(_ memory: UInt64?) -> [Setting<AppManifest>] {
        [
            .number("Memory", "JetsamPriority", -1000...1000, \.policy.jetsamPriority),
            .size("Memory", "MemoryMax", \.policy.memoryMax, memory: memory),
            .size("Memory", "MemoryHigh", \.policy.memoryHigh, memory: memory),
            .size("Memory", "SuspendedMemoryMax", \.policy.suspendedMemoryMax, memory: memory),
            .size("Memory", "SuspendedMemoryHigh", \.policy.suspendedMemoryHigh, memory: memory),
        ]
    }
}
