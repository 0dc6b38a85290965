import LifecycleCore
import Manifest

/// What must hold of any input, for the fuzzer and for the seeds that are kept. The bytes are an app's manifest, and after
/// each 0x1c a drop-in of it; the same bytes are a configuration, names in a folder, and a value.
///
/// - Returns: a sentence for each property that does not hold.
package func violations(_ bytes: [UInt8]) -> [String] {
    guard let id = AppID("fuzz") else { return ["fuzz is an ID"] }
    var checker = Checker()
    let sources = bytes.split(separator: 0x1c, omittingEmptySubsequences: false).enumerated()
        .map { SourceFile(path: "f\($0.offset)", bytes: Array($0.element)) }
    checker.checkManifest(id, sources)
    checker.checkConfiguration(sources)
    checker.checkFiles(bytes)
    checker.checkValue(String(decoding: bytes.prefix(64), as: UTF8.self))
    return checker.violations
}

/// As if the machine had it: no round number.
let machineMemory: UInt64 = 17_000_000_001

struct Checker {
    private(set) var violations: [String] = []

    mutating func hold(_ condition: Bool, _ sentence: @autoclosure () -> String) {
        if !condition { violations.append(sentence()) }
    }

    mutating func checkManifest(_ id: AppID, _ sources: [SourceFile]) {
        let (manifest, diagnostics) = parseManifest(id: id, sources: sources, memory: machineMemory)
        let again = parseManifest(id: id, sources: sources, memory: machineMemory)
        hold(again.0 == manifest && again.1 == diagnostics, "parsing is deterministic")
        check(diagnostics, of: sources, isRefused: manifest == nil)
        checkEquivalents(id, sources, manifest)
        guard let manifest else { return }
        check(manifest)
        let text = SourceFile(path: "rendered", bytes: Array(rendered(manifest).utf8))
        let back = parseManifest(id: id, sources: [text], memory: machineMemory)
        hold(back.0 == manifest, "written anew it is the same: \(rendered(manifest)) \(back.1)")
    }

    mutating func checkConfiguration(_ sources: [SourceFile]) {
        let (configuration, diagnostics) = parseConfiguration(sources: sources, memory: machineMemory)
        check(diagnostics, of: sources, isRefused: configuration == nil)
        guard let configuration else { return }
        hold(configuration.policy.foregroundLimit > 0, "somebody is in the foreground")
        hold(configuration.policy.budget != 0, "the budget is something")
        for (_, threshold) in configuration.pressureThresholds {
            hold((1...99).contains(threshold.percent), "\(threshold) is a part of the time")
        }
    }

    private mutating func check(_ diagnostics: [Diagnostic], of sources: [SourceFile], isRefused: Bool) {
        hold(
            diagnostics.contains { $0.severity == .error } == isRefused, "refused is what has an error, and says so")
        hold(diagnostics.count <= 101, "diagnostics are bounded")
        for diagnostic in diagnostics {
            guard let source = sources.first(where: { $0.path == diagnostic.file }) else {
                violations.append("a diagnostic names one of the files: \(diagnostic)")
                continue
            }
            let message = diagnostic.message
            hold(!message.isEmpty && message.utf8.count < 1000, "a sentence: \(diagnostic)")
            hold(message.unicodeScalars.allSatisfy(isHarmless), "no control characters in a sentence: \(diagnostic)")
            guard diagnostic.line > 0 else {
                hold(diagnostic.line == 0 && diagnostic.column == 0, "no line, no column: \(diagnostic)")
                continue
            }
            checkPlace(diagnostic, source)
        }
    }

    private mutating func checkPlace(_ diagnostic: Diagnostic, _ source: SourceFile) {
        var bytes = source.bytes[...]
        if bytes.starts(with: byteOrderMark) { bytes = bytes.dropFirst(byteOrderMark.count) }
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard diagnostic.line <= lines.count, (1...lines[diagnostic.line - 1].count).contains(diagnostic.column) else {
            violations.append("a diagnostic is at a byte of the file: \(diagnostic)")
            return
        }
        let line = lines[diagnostic.line - 1]
        let byte = line[line.startIndex + diagnostic.column - 1]
        hold(byte != UInt8(ascii: " ") && byte != UInt8(ascii: "\t"), "it is not a blank: \(diagnostic)")
        // What is no UTF-8 may begin with a byte that only goes on.
        let isText = diagnostic.message != "is no UTF-8 text"
        hold(!isText || byte & 0xc0 != 0x80, "it is where a character begins: \(diagnostic)")
    }

    private mutating func check(_ manifest: AppManifest) {
        hold(manifest.exec.first?.utf8.first == UInt8(ascii: "/"), "an app has a program")
        let policy = manifest.policy
        hold((-1000...1000).contains(policy.jetsamPriority), "JetsamPriority= is in its range")
        hold((-1000...1000).contains(manifest.oomScoreAdjust ?? 0), "OOMScoreAdjust= is in its range")
        hold(manifest.umask <= 0o777, "UMask= is in its range")
        let folders = manifest.stateDirectory + manifest.cacheDirectory + manifest.runtimeDirectory
        let texts =
            manifest.exec + manifest.environment + folders + manifest.supplementaryGroups + manifest.listenStream
            + [manifest.name] + [manifest.user, manifest.group, manifest.workingDirectory].compactMap { $0 }
        hold(!texts.contains { $0.utf8.contains(0) }, "no NUL ends a string early for the kernel")
        hold(
            manifest.environment.allSatisfy {
                $0.utf8.contains(UInt8(ascii: "=")) && $0.utf8.first != UInt8(ascii: "=")
            }, "a variable has a name and a value")
        for folder in folders {
            let parts = folder.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            hold(
                parts.allSatisfy { !$0.isEmpty && !$0.elementsEqual("..".utf8) }, "\(folder) stays below its folder")
        }
        hold(manifest.limits.allSatisfy { $0.soft <= $0.hard }, "no soft limit is over its hard one")
        hold(Set(manifest.limits.map(\.resource)).count == manifest.limits.count, "one limit a resource")
        for size in [manifest.memoryMax, manifest.suspendedMemoryMax, policy.memoryHigh, policy.suspendedMemoryHigh] {
            hold(size != 0 && size ?? 0 <= Int64.max, "a size is something, and an Int64")
        }
        hold(policy.watchdog != .zero, "a watchdog waits, or there is none")
        for time in [
            policy.launchDeadline, policy.backgroundDeadline, policy.terminateDeadline, policy.extendedDeadlineMax,
            policy.backgroundTime, policy.expirationNotice, policy.suspendDelay, policy.watchdog,
        ] {
            hold(time ?? .zero >= .zero && time ?? .zero <= .seconds(3_155_760_000), "a time is within a century")
        }
    }

    mutating func checkValue(_ text: String) {
        if let time = parseTimeSpan(text) {
            hold(time ?? .zero >= .zero, "no time is negative")
            hold(parseTimeSpan(formatTimeSpan(time)) == .some(time), "\(formatTimeSpan(time)) reads as it was")
            hold(parseTimeSpan(" \(text)\t") == .some(time), "blanks around it change nothing")
        }
        if let size = parseSize(text) {
            hold(parseSize("\(size)") == .some(size), "\(size) reads as it was")
            let shown = formatSize(size)
            let back = parseSize(shown)
            hold(back.map(formatSize) == shown, "\(size) is shown as \(shown), and that as \(String(describing: back))")
        }
        hold(
            ["ExecStart", "Type", nil].contains(nearest(text, among: ["ExecStart", "Type"])), "nearest is a known one")
        if (1...64).contains(text.utf8.count) {
            hold(nearest(text, among: ["ExecStart", text]) == text, "nothing is nearer than itself")
        }
    }
}

let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]

/// Neither moves a terminal's cursor nor turns text around.
private func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7f...0x9f, 0x61c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069, 0xfeff: false
    default: true
    }
}
