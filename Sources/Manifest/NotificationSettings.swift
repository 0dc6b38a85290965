import LifecycleCore

/// The settings about what the machine notifies the app of (L33).
extension AppManifest {
    static func notificationSettings(_ specifiers: Specifiers) -> [Setting<AppManifest>] {
        [
            Setting(
                section: "App", key: "Notifications",
                expected: "one or more of " + Notification.kinds.joined(separator: ", "),
                apply: { manifest, text throws(ValueError) in
                    for word in plainWords(text) {
                        guard let kind = NotificationKinds(named: word.text) else {
                            throw ValueError.invalid(word.text, offset: word.offset)
                        }
                        manifest.policy.notifications.insert(kind)
                    }
                },
                reset: { manifest, _ in manifest.policy.notifications = [] }),
            .value("App", "SettingsFile", "a normalized absolute path", \.settingsFile) {
                text throws(ValueError) -> String?? in
                let path = try specifiers.expanded(text)
                return isNormalizedPath(path) && path != "/" ? .some(path) : nil
            },
        ]
    }

    /// Kinds that no source of the daemon has: `greenroomctl send` alone sends them.
    private static let kindsWithoutSource = ["screenMode"]

    /// Warns of kinds that do not come.
    func checkNotifications(
        _ reader: SettingsReader<AppManifest>, _ file: String, _ diagnostics: inout DiagnosticList
    ) {
        func warn(_ key: String, _ sentence: String) {
            guard reader.assignedKeys.contains(key) else { return }
            diagnostics.warn(reader.locations[key] ?? .whole(file), sentence)
        }
        let kinds = policy.notifications.names
        for kind in kinds where Self.kindsWithoutSource.contains(kind) {
            warn("Notifications", "Notifications=\(kind) has no effect: only greenroomctl send sends this kind")
        }
        if kinds.contains("protectedData"), !policy.usesProtectedData {
            warn("Notifications", "Notifications=protectedData has no effect without ProtectedData=yes")
        }
        if kinds.contains("time"), policy.role == .worker {
            warn(
                "Notifications",
                "Notifications=time has no effect: the kind waits for the foreground, in which a worker never is")
        }
        // Without SettingsFile= the kind is about the settings of the desktop.
        if !kinds.contains("settings") {
            warn("SettingsFile", "SettingsFile= has no effect: Notifications= does not contain settings")
        }
    }
}
