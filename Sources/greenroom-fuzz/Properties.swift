import LifecycleCore
import Manifest

/// What must hold of any input; what doesn't stops the fuzzer. The bytes are an app's manifest, and after each 0x1c a
/// drop-in of it; the same bytes are a configuration, and a value.
func checkProperties(_ bytes: [UInt8]) {
    guard let id = AppID("fuzz") else { fatalError("fuzz is an ID") }
    let sources = bytes.split(separator: 0x1c, omittingEmptySubsequences: false).enumerated()
        .map { SourceFile(path: "f\($0.offset)", bytes: Array($0.element)) }
    let (manifest, diagnostics) = parseManifest(id: id, sources: sources, memory: memory)
    let again = parseManifest(id: id, sources: sources, memory: memory)
    hold(again.0 == manifest && again.1 == diagnostics, "parsing is deterministic")
    check(diagnostics, of: sources, isRefused: manifest == nil)
    if let manifest { check(manifest) }
    checkEquivalents(id, sources, manifest)

    let (configuration, findings) = parseConfiguration(sources: sources)
    check(findings, of: sources, isRefused: configuration == nil)
    if let configuration { check(configuration) }

    checkValue(String(decoding: bytes.prefix(64), as: UTF8.self))
}

private func check(_ diagnostics: [Diagnostic], of sources: [SourceFile], isRefused: Bool) {
    hold(
        diagnostics.contains { $0.severity == .error } == isRefused, "refused is what has an error, and says so")
    hold(diagnostics.count <= 101, "diagnostics are bounded")
    for diagnostic in diagnostics {
        guard let source = sources.first(where: { $0.path == diagnostic.file }) else {
            fatalError("a diagnostic names one of the files: \(diagnostic)")
        }
        hold(!diagnostic.message.isEmpty && diagnostic.message.utf8.count < 1000, "a sentence: \(diagnostic)")
        hold(
            diagnostic.message.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) },
            "a sentence has no control characters: \(diagnostic)")
        guard diagnostic.line > 0 else { continue }
        let lines = source.bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        hold(diagnostic.line <= lines.count, "a diagnostic is in the file: \(diagnostic)")
        hold(
            (1...lines[diagnostic.line - 1].count + 1).contains(diagnostic.column),
            "a diagnostic is in its line: \(diagnostic)")
    }
}

private func check(_ manifest: AppManifest) {
    hold(manifest.exec.first?.hasPrefix("/") == true, "an app has a program")
    let policy = manifest.policy
    hold((-1000...1000).contains(policy.jetsamPriority))
    hold((-1000...1000).contains(manifest.oomScoreAdjust ?? 0))
    hold(manifest.umask <= 0o777)
    let texts =
        manifest.exec + manifest.environment + manifest.stateDirectory + manifest.cacheDirectory
        + manifest.runtimeDirectory + [manifest.name, manifest.user ?? "", manifest.group ?? ""]
    hold(!texts.contains { $0.utf8.contains(0) }, "no NUL ends a string early for the kernel")
    hold(
        manifest.environment.allSatisfy { $0.utf8.contains(UInt8(ascii: "=")) && $0.utf8.first != UInt8(ascii: "=") })
    let folders = manifest.stateDirectory + manifest.cacheDirectory + manifest.runtimeDirectory
    hold(!folders.contains { $0.utf8.first == UInt8(ascii: "/") || $0.isEmpty }, "folders are relative")
    hold(
        !folders.contains { $0.utf8.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual("..".utf8) } },
        "folders stay below theirs")
    hold(manifest.limits.allSatisfy { $0.soft <= $0.hard })
    for time in [
        policy.launchDeadline, policy.backgroundDeadline, policy.terminateDeadline, policy.extendedDeadlineMax,
        policy.backgroundTime, policy.expirationNotice, policy.suspendDelay, policy.watchdog,
    ] {
        hold(time ?? .zero >= .zero)
        hold(parseTimeSpan(formatTimeSpan(time)) == .some(time), "\(formatTimeSpan(time)) reads as it was")
    }
}

private func check(_ configuration: ManagerConfiguration) {
    hold(configuration.policy.foregroundLimit > 0)
    for (_, threshold) in configuration.pressureThresholds { hold((1...100).contains(threshold.percent)) }
}

/// Other ways to write the same say the same.
private func checkEquivalents(_ id: AppID, _ sources: [SourceFile], _ manifest: AppManifest?) {
    let isPlain = sources.allSatisfy { $0.bytes.count < 10_000 && !$0.bytes.contains(UInt8(ascii: "\r")) }
    guard isPlain else { return }
    let commented = sources.map { source in
        source.bytes.starts(with: [0xef, 0xbb, 0xbf])
            ? source : SourceFile(path: source.path, bytes: Array("# a comment\\\n".utf8) + source.bytes)
    }
    hold(parseManifest(id: id, sources: commented).0 == manifest, "a comment changes nothing")
    let carriage = sources.map { source in
        SourceFile(
            path: source.path,
            bytes: source.bytes.flatMap { $0 == UInt8(ascii: "\n") ? [UInt8(ascii: "\r"), $0] : [$0] })
    }
    hold(parseManifest(id: id, sources: carriage).0 == manifest, "other systems' line ends change nothing")
    let empty = SourceFile(path: "empty", bytes: [])
    hold(parseManifest(id: id, sources: [empty] + sources).0 == manifest, "an empty file changes nothing")
}

private func checkValue(_ text: String) {
    if let time = parseTimeSpan(text) {
        hold(time ?? .zero >= .zero)
        hold(parseTimeSpan(formatTimeSpan(time)) == .some(time), "\(formatTimeSpan(time)) reads as it was")
        hold(parseTimeSpan(" \(text)\t") == .some(time), "blanks around it change nothing")
    }
    if let size = parseSize(text) {
        let shown = formatSize(size)
        guard let back = parseSize(shown) else { fatalError("\(shown) is a size") }
        hold(formatSize(back) == shown, "\(size) is shown as \(shown), and that as \(formatSize(back))")
    }
    if let name = nearest(text, among: ["ExecStart", "Type", "User"]) {
        hold(["ExecStart", "Type", "User"].contains(name))
    }
}

/// A release build keeps its silence about a precondition that fails.
private func hold(_ condition: Bool, _ sentence: @autoclosure () -> String = "a value is in its range") {
    if !condition { fatalError(sentence()) }
}
