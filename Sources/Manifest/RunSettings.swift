package import LifecycleCore

/// The manifest of a command of `greenroomctl run` (L54). It has no file: `-p KEY=VALUE` sets what its caller may choose.
package struct RunSettings: Hashable, Sendable {
    /// The name of the command, without its folders.
    package var command: String
    /// As they were given, `KEY=VALUE`.
    package var assignments: [String]

    package init(command: String, assignments: [String]) {
        self.command = command
        self.assignments = assignments
    }

    /// The most assignments, and the most bytes of one.
    package static let maximumAssignments = 64
    package static let maximumLength = 1024

    /// The keys that can be set, by their section. What starts programs, or acts when no caller waits, is not among them.
    private static let keys: [(section: String, keys: [String])] = [
        ("App", ["KillMode", "StartupSec"]),
        (
            "Lifecycle",
            [
                "IdleSec", "IdleCPU", "KeepAwake", "RequestSec", "PulseSec", "Timers", "Suspend", "ReclaimOnSuspend",
                "TerminateDeadlineSec", "TerminateSuspended", "UnloadAfterSec",
                "BackgroundCPU", "BackgroundCPULimit", "BackgroundCPUSec",
            ]
        ),
        ("Wake", ["WakeThreshold"]),
        ("Memory", ["JetsamPriority", "MemoryMax", "MemoryHigh", "SuspendedMemoryMax", "SuspendedMemoryHigh"]),
        ("Signals", ["Terminate"]),
    ]

    /// All keys, in the order of the documentation.
    package static var allKeys: [String] { keys.flatMap(\.keys) }

    /// The manifest, or why the settings are refused: a sentence without the full stop.
    /// - Parameter memory: the machine's memory in bytes, or `nil` if unknown.
    package func manifest(
        of id: AppID, memory: UInt64?, specifiers: SpecifierValues
    ) -> Result<AppManifest, RunSettingsProblem> {
        var text = "[App]\nExecStart=/bin/false\n" + Self.common
        guard assignments.count <= Self.maximumAssignments else {
            return .failure(RunSettingsProblem("-p: more than \(Self.maximumAssignments) settings"))
        }
        for assignment in assignments {
            switch Self.section(of: assignment) {
            case .success(let section): text += "[\(section)]\n\(assignment)\n"
            case .failure(let problem): return .failure(problem)
            }
        }
        let source = SourceFile(path: "-p", bytes: Array(text.utf8))
        let (parsed, diagnostics) = parseManifest(id: id, sources: [source], memory: memory, specifiers: specifiers)
        guard var manifest = parsed else {
            let error = diagnostics.first { $0.severity == .error }?.message ?? "invalid settings"
            return .failure(RunSettingsProblem("-p \(error)"))
        }
        manifest.name = String(decoding: command.utf8.filter { $0 >= 0x20 && $0 != 0x7f }.prefix(256), as: UTF8.self)
        manifest.exec = [command]
        manifest.policy.isTransient = true
        manifest.policy.isAttached = true
        return .success(manifest)
    }

    /// What the manifest of each command has, within the section `[App]`.
    package static let common = "Role=worker\n[Lifecycle]\nBackgroundCPU=ignore\nTerminateSuspended=notify\n"

    /// The section of a setting, or why it is refused.
    package static func section(of assignment: String) -> Result<String, RunSettingsProblem> {
        let key = String(assignment.prefix { $0 != "=" })
        guard let section = keys.first(where: { $0.keys.contains(key) })?.section else {
            let near = nearest(key, among: allKeys).map { "; did you mean \($0)?" } ?? ""
            return .failure(
                RunSettingsProblem(
                    "-p \(shown(assignment)): unknown key\(near); expected one of \(allKeys.joined(separator: ", "))"))
        }
        // A backslash at its end would continue the line.
        guard assignment.utf8.count > key.utf8.count, assignment.utf8.count <= maximumLength,
            assignment.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }), !assignment.hasSuffix("\\")
        else {
            return .failure(
                RunSettingsProblem(
                    "-p \(shown(assignment)): invalid setting; expected KEY=VALUE with at most \(maximumLength) bytes and "
                        + "no control characters"))
        }
        return .success(section)
    }

    private static func shown(_ text: String) -> String { String(text.prefix(64)) }
}

/// Why the settings of a command are refused.
package struct RunSettingsProblem: Error, Hashable, CustomStringConvertible {
    package var description: String
    init(_ description: String) { self.description = description }
}
