import LifecycleCore
package import Manifest
import Schedule

/// Renders a manifest as a file that is parsed to the same manifest.
package func rendered(_ manifest: AppManifest) -> String {
    let lines = app(manifest) + lifecycle(manifest) + signals(manifest) + memory(manifest) + wake(manifest)
    return lines.joined(separator: "\n") + "\n"
}

private func type(_ readiness: AppPolicy.Readiness) -> String {
    switch readiness {
    case .executed: "simple"
    case .notified: "notify"
    case .forked: "forking"
    case .listening: "listening"
    }
}

private func app(_ manifest: AppManifest) -> [String] {
    let policy = manifest.policy
    var lines = [
        "[App]", line("Name", doubled(manifest.name, "%")), "Type=\(type(policy.readiness))",
        "StartupSec=\(formatTimeSpan(policy.startUpTime))", "UMask=\(String(manifest.umask, radix: 8))",
        "URLSchemes=\(manifest.urlSchemes.joined(separator: " "))",
        "NoNewPrivileges=\(manifest.noNewPrivileges ? "yes" : "no")", "ProgramDigest=\(manifest.programDigest ?? "")",
        "IgnoreSIGPIPE=\(manifest.ignoresSIGPIPE ? "1" : "0")",
        "[Lifecycle]", "TerminateSuspended=\(policy.terminateSuspended.rawValue)", "[App]",
        "KillMode=\(policy.killMode.rawValue)",
        "Relaunch=\(["no", "on-failure", "always"][[.no, .onFailure, .always].firstIndex(of: policy.relaunch) ?? 0])",
        "Notifications=\(policy.notifications.names.joined(separator: " "))",
        "NotifyAccess=\(manifest.notifyAccess.rawValue)", "Role=\(policy.role.rawValue)",
        "ExecStart=" + command(manifest).joined(separator: " "),
    ]
    for (key, words) in [
        ("SupplementaryGroups", manifest.supplementaryGroups), ("Environment", manifest.environment),
        ("StateDirectory", manifest.stateDirectory), ("CacheDirectory", manifest.cacheDirectory),
        ("RuntimeDirectory", manifest.runtimeDirectory),
    ] { lines += words.map { "\(key)=\(quoted($0))" } }
    for (key, value) in [
        ("PIDFile", manifest.pidFile), ("User", manifest.user), ("Group", manifest.group),
        ("WorkingDirectory", manifest.workingDirectory), ("SettingsFile", manifest.settingsFile),
        ("WindowAppID", manifest.windowAppID), ("Seat", manifest.policy.seat),
    ] { lines += value.map { [line(key, doubled($0, "%"))] } ?? [] }
    lines += manifest.environmentFiles.map {
        line("EnvironmentFile", ($0.isOptional ? "-" : "") + doubled($0.path, "%"))
    }
    if let state = policy.launchAtStart {
        lines.append("LaunchAtStart=\(state == .foreground ? "foreground" : "background")")
    }
    lines.append(line("StandardOutput", target(manifest.standardOutput)))
    lines.append(line("StandardError", target(manifest.standardError)))
    if let score = manifest.oomScoreAdjust { lines.append("OOMScoreAdjust=\(score)") }
    for limit in manifest.limits {
        lines.append("Limit\(limitNames[limit.resource] ?? "?")=\(span(limit.soft)):\(span(limit.hard))")
    }
    return lines
}

private func command(_ manifest: AppManifest) -> [String] { words(manifest.exec, manifest.commandWords) }

private func words(_ words: [String], _ variables: [Int: CommandWord]) -> [String] {
    words.enumerated().map { index, word in
        quoted(variables[index] == nil ? doubled(word, "$") : word)
    }
}

private func target(_ target: OutputTarget) -> String {
    switch target {
    case .journal: "journal"
    case .inherit: "inherit"
    case .null: "null"
    case .file(let path): "file:" + doubled(path, "%")
    case .append(let path): "append:" + doubled(path, "%")
    }
}

/// The resource numbers of setrlimit(2).
private let limitNames: [Int32: String] = [
    0: "CPU", 1: "FSIZE", 2: "DATA", 3: "STACK", 4: "CORE", 6: "NPROC", 7: "NOFILE", 8: "MEMLOCK", 9: "AS",
]

private func span(_ limit: UInt64) -> String { limit == .max ? "infinity" : "\(limit)" }

private func lifecycle(_ manifest: AppManifest) -> [String] {
    let policy = manifest.policy
    let modes = BackgroundModes.named.filter { policy.backgroundModes.contains($0.mode) }.map(\.name)
    let times: [(String, Duration?)] = [
        ("LaunchDeadline", policy.launchDeadline), ("BackgroundDeadline", policy.backgroundDeadline),
        ("TerminateDeadline", policy.terminateDeadline), ("ExtendedDeadlineMax", policy.extendedDeadlineMax),
        ("BackgroundTime", policy.backgroundTime), ("BackgroundTimePerHour", policy.backgroundTimePerHour),
        ("TaskProgress", policy.taskProgressTime), ("ExpirationNotice", policy.expirationNotice),
        ("SuspendDelay", policy.suspendDelay), ("Watchdog", policy.watchdog), ("Idle", policy.idleTime),
        ("Request", policy.requestTime), ("Pulse", policy.pulseTime), ("BackgroundCPU", policy.backgroundCPUTime),
        ("UnloadAfter", policy.unloadAfter),
    ]
    return [
        "[Lifecycle]", "BackgroundModes=\(modes.joined(separator: " "))",
        "ExitsOnSuspend=\(policy.exitsOnSuspend ? "on" : "off")",
        "Essential=\(policy.isEssential ? "yes" : "no")",
        "ProtectedData=\(policy.usesProtectedData ? "1" : "0")",
        "SnapshotPrivacy=\(policy.hidesSnapshot ? "hidden" : "none")",
        "SnapshotPersistent=\(manifest.keepsSnapshot ? "yes" : "no")",
        "Notices=\(manifest.notices.rawValue)", "ReadOnlyProgram=\(manifest.readOnlyProgram ? "true" : "false")",
        "SceneRoles=\(manifest.sceneRoles.map(\.rawValue).sorted().joined(separator: " "))",
        "Releases=\(manifest.releases.joined(separator: " "))",
        "ReleasesAction=\(policy.waitsForRelease ? "wait" : "kill")",
        "BackgroundGPU=\(policy.forbidsBackgroundGPU ? "no" : "yes")",
        "IdleCPU=\(policy.idleProcessorShare / 10).\(policy.idleProcessorShare % 10)%",
        "BackgroundCPU=\(policy.backgroundCPU?.rawValue ?? "")",
        "BackgroundCPULimit=\(policy.backgroundCPULimit / 10)%",
        "Suspend=\(policy.suspension.rawValue)",
        "ReclaimOnSuspend=\(policy.reclaim.rawValue)",
        "Timers=\(policy.keepsTimers ? "yes" : "no")",
        "KeepAwake=\(manifest.keepAwake.map(words) ?? "")",
    ] + hooks(manifest) + times.map { "\($0.0)Sec=\(formatTimeSpan($0.1))" }
}

private func hooks(_ manifest: AppManifest) -> [String] {
    HookKind.allCases.flatMap { kind in
        (manifest.hooks[kind] ?? []).map { kind.rawValue + "=" + words($0.words, $0.variables).joined(separator: " ") }
    }
}

private func words(_ keepAwake: AppPolicy.KeepAwake) -> String {
    let named = AppPolicy.KeepAwake.named.filter { keepAwake.contains($0.value) }.map(\.name)
    return named.isEmpty ? "none" : named.joined(separator: " ")
}

private func wake(_ manifest: AppManifest) -> [String] {
    let threshold = manifest.policy.wakeThreshold
    return [
        "[Wake]", "Traffic=\(manifest.traffic.map { $0 ? "yes" : "no" } ?? "")",
        "WakeThreshold=\(threshold.bytes) \(formatTimeSpan(threshold.time))",
        "WakeOnLocation=\(manifest.wakeDistance.map(String.init) ?? "")",
        "UnifiedPush=\(manifest.unifiedPush ? "yes" : "")",
    ] + timers(manifest.timers) + manifest.wakeDevices.map { "WakeOnDevice=" + quoted(device($0)) } + sockets(manifest)
}

private func device(_ device: DeviceMatch) -> String {
    let properties = device.properties.map { "\($0.name)=\($0.value)" }.joined(separator: ",")
    return device.subsystem + (properties.isEmpty ? "" : ":" + properties)
}

private func timers(_ timers: TimerSettings) -> [String] {
    func span(_ time: Int) -> String { formatTimeSpan(.microseconds(Int64(time))) }
    return timers.calendar.map { line("OnCalendar", doubled($0.text, "%")) }
        + timers.sinceActive.map { "OnUnitActiveSec=\(span($0))" } + timers.sinceBoot.map { "OnBootSec=\(span($0))" }
        + [
            "Persistent=\(timers.isPersistent)", "AccuracySec=\(span(timers.accuracy))",
            "RandomizedDelaySec=\(span(timers.randomizedDelay))",
            "FetchIntervalSec=\(timers.fetchInterval.map(span) ?? "infinity")",
        ]
}

private func sockets(_ manifest: AppManifest) -> [String] {
    let sockets = manifest.sockets
    return sockets.all.map { line($0.kind.key, doubled($0.address.description, "%")) }
        + [
            ("FileDescriptorName", sockets.name), ("SocketUser", sockets.user), ("SocketGroup", sockets.group),
        ].map { line($0, doubled($1 ?? "", "%")) } + [
            "SocketMode=\(String(sockets.mode, radix: 8))",
            "DirectoryMode=\(String(sockets.directoryMode, radix: 8))", "Backlog=\(sockets.backlog)", "Accept=no",
            "BindIPv6Only=\(sockets.ipv6Only.rawValue)", "FreeBind=\(sockets.isFreeBind ? 1 : 0)",
            "ReusePort=\(sockets.reusesPort)", "KeepAlive=\(sockets.keepsAlive)", "NoDelay=\(sockets.hasNoDelay)",
            "NonBlocking=\(sockets.isNonBlocking)",
            "ConnectionWaitSec=\(formatTimeSpan(manifest.policy.connectionWait))",
        ]
}

private func signals(_ manifest: AppManifest) -> [String] {
    let signals = manifest.signals
    let named: [(String, Int32?)] = [
        ("ResignActive", signals.resignActive), ("BecomeActive", signals.becomeActive),
        ("EnterBackground", signals.enterBackground), ("EnterForeground", signals.enterForeground),
        ("MemoryWarning", signals.memoryWarning), ("TaskExpiring", signals.taskExpiring),
        ("Notification", signals.notification),
        ("Terminate", signals.terminate),
    ]
    return ["[Signals]"] + named.map { key, signal in "\(key)=\(signal.map { "\($0)" } ?? "none")" }
}

private func memory(_ manifest: AppManifest) -> [String] {
    let sizes: [(String, UInt64?)] = [
        ("MemoryMax", manifest.memoryMax), ("MemoryHigh", manifest.policy.memoryHigh),
        ("SuspendedMemoryMax", manifest.suspendedMemoryMax),
        ("SuspendedMemoryHigh", manifest.policy.suspendedMemoryHigh),
    ]
    return ["[Memory]", "JetsamPriority=\(manifest.policy.jetsamPriority)"]
        + sizes.map { key, size in "\(key)=\(size.map { "\($0)" } ?? "infinity")" }
}

/// An assignment with a trailing space, so that a backslash at the end of the value does not continue the line.
private func line(_ key: String, _ value: String) -> String { "\(key)=\(value) " }

private func doubled(_ text: String, _ sign: Unicode.Scalar) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars { result += scalar == sign ? [scalar, scalar] : [scalar] }
    return String(result)
}

/// A word in double quotes, with C-style escapes for control characters, quotes and backslashes.
package func quoted(_ text: String) -> String {
    var result: [UInt8] = [UInt8(ascii: "\"")]
    for byte in doubled(text, "%").utf8 {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): result += [UInt8(ascii: "\\"), byte]
        case 0..<0x20, 0x7f: result += "\\x\(byte < 16 ? "0" : "")\(String(byte, radix: 16))".utf8
        default: result.append(byte)
        }
    }
    return String(decoding: result + [UInt8(ascii: "\"")], as: UTF8.self)
}
