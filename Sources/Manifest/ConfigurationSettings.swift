import LifecycleCore

/// The table of settings of `greenroom.conf`.
extension ManagerConfiguration {
    /// - Parameter memory: the machine's memory in bytes, or `nil` if unknown.
    static func settings(memory: UInt64?) -> [Setting<ManagerConfiguration>] {
        [
            .number("Manager", "ForegroundLimit", 1...1000, \.policy.foregroundLimit),
            .value("Manager", "LaunchesAtOnce", "a number from 1 to 1000, or infinity", \.launchesAtOnce) { text in
                text == "infinity" ? .infinity : parseNumber(text, in: 1...1000).map { .number($0) }
            },
            .value("Manager", "ContinuedTasks", "a number from 0 to 1000, or infinity", \.policy.continuedTasks) {
                text -> Int?? in text == "infinity" ? .some(nil) : parseNumber(text, in: 0...1000).map { .some($0) }
            },
            .value("Manager", "Suspend", "yes or dry-run", \.policy.isDryRun) {
                $0 == "dry-run" ? true : parseBoolean($0) == true ? false : nil
            },
            handlers("Manager", "DefaultHandlers"),
            .value("Manager", "Dialer", "the ID of an app such as org.example.Phone", \.dialer) { text -> AppID?? in
                AppID(text).map { .some($0) }
            },
            Setting(
                section: "Manager", key: "Interruptions",
                expected: "one or more of " + InterruptionSources.named.map(\.name).joined(separator: ", ")
            ) { configuration, text throws(ValueError) in
                for word in plainWords(text) {
                    guard let found = InterruptionSources.named.first(where: { $0.name == word.text }) else {
                        throw ValueError.invalid(word.text, offset: word.offset)
                    }
                    configuration.interruptions.insert(found.source)
                }
            } reset: { configuration, _ in
                configuration.interruptions = []
            },
            .value("Manager", "ProtectedDirectory", "a normalized absolute path", \.protectedDirectory) {
                text -> String?? in isNormalizedPath(text) && text != "/" ? .some(text) : nil
            },
            Setting(
                section: "Manager", key: "ProtectedKeyCommand",
                expected: "the absolute path of a program and its arguments"
            ) { configuration, text throws(ValueError) in
                let words = try splitWords(text)
                guard let program = words.first, isNormalizedPath(program.text), words.count <= 64 else {
                    throw ValueError()
                }
                configuration.protectedKeyCommand = words.map(\.text)
            } reset: { configuration, _ in
                configuration.protectedKeyCommand = []
            },
            .value(
                "Manager", "MetricsListen", "off, or an address such as 127.0.0.1:9187, [::1]:9187 or a path",
                \.metricsListen
            ) { text throws(ValueError) -> HeldSocket.Address?? in
                text == "off" ? .some(nil) : .some(try HeldSocket.Address(parsing: text))
            },
            .value("Manager", "TraceSize", "a size up to 1G such as 16M, or 0", \.traceSize) {
                text throws(ValueError) in
                guard let bytes = try parseBytes(text, memory: memory), bytes <= 1 << 30 else { return nil }
                return bytes
            },
            .size("Memory", "Budget", \.policy.budget, memory: memory),
            .value("Memory", "JetsamOrder", "largest, lru or balanced", \.policy.jetsamOrder) {
                ["largest": ManagerPolicy.JetsamOrder.largest, "lru": .lru, "balanced": .balanced][$0]
            },
            available("WarningAvailable", \.policy.warningAvailable, memory),
            available("CriticalAvailable", \.policy.criticalAvailable, memory),
            pressure("WarningPressure", \.warningPressure), pressure("CriticalPressure", \.criticalPressure),
        ]
    }

    private static func handlers(_ section: String, _ key: String) -> Setting<ManagerConfiguration> {
        Setting(
            section: section, key: key, expected: "SCHEME:APP such as mailto:org.example.Mail"
        ) { values, text throws(ValueError) in
            for word in try splitWords(text) {
                guard let handler = DefaultHandler(word.text) else {
                    throw ValueError.invalid(word.text, offset: word.offset)
                }
                guard values.defaultHandlers.count < DefaultHandler.maximumCount else {
                    throw ValueError(
                        problem: "more than \(DefaultHandler.maximumCount) entries", offset: word.offset)
                }
                values.defaultHandlers.append(handler)
            }
        } reset: { values, _ in
            values.defaultHandlers = []
        }
    }

    private static func available(
        _ key: String, _ path: WritableKeyPath<ManagerConfiguration, MemoryAmount?>, _ memory: UInt64?
    ) -> Setting<ManagerConfiguration> {
        .value("Memory", key, "a size such as 512M or a percentage such as 10%", path) {
            text throws(ValueError) -> MemoryAmount?? in
            try parseAmount(text, memory: memory).map { .some($0) }
        }
    }

    private static func pressure(
        _ key: String, _ path: WritableKeyPath<ManagerConfiguration, PressureThreshold?>
    ) -> Setting<ManagerConfiguration> {
        .value("Memory", key, "off, or a share of time such as 'some 7%' or 'full 10%'", path) {
            text -> PressureThreshold?? in
            if text == "off" || text == "infinity" { return .some(nil) }
            let words = plainWords(text).map(\.text)
            guard (1...2).contains(words.count), let percent = words.last.flatMap(parsePercent),
                (1...99).contains(percent)
            else { return nil }
            let kind = words.count == 1 ? .some : PressureThreshold.Kind(rawValue: words[0])
            return kind.map { .some(PressureThreshold($0, percent: percent)) }
        }
    }
}
