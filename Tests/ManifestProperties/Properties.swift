import LifecycleCore
import Manifest
import Schedule

/// Checks the properties that hold for any input, for the fuzzer and for the saved seeds.
///
/// The bytes are a manifest followed by drop-ins, separated by 0x1c. The same bytes are also parsed as a configuration, as
/// file names, and as a value.
///
/// - Returns: a sentence for each property that does not hold.
package func violations(_ bytes: [UInt8]) -> [String] {
    guard let id = AppID("fuzz@a-b") else { return ["'fuzz@a-b' is a valid ID"] }
    var checker = Checker()
    let sources = bytes.split(separator: 0x1c, omittingEmptySubsequences: false).enumerated()
        .map { SourceFile(path: "f\($0.offset)", bytes: Array($0.element)) }
    checker.checkManifest(id, sources)
    checker.checkConfiguration(sources)
    checker.checkFiles(bytes)
    checker.checkValue(String(decoding: bytes.prefix(64), as: UTF8.self))
    return checker.violations
}

/// The machine's memory in bytes. It is not divisible by 100, so that percentages are rounded.
let machineMemory: UInt64 = 17_000_000_001

func parsedManifest(_ id: AppID, _ sources: [SourceFile]) -> (AppManifest?, [Diagnostic]) {
    parseManifest(id: id, sources: sources, memory: machineMemory, specifiers: machineValues)
}

/// Some values are unknown.
private let machineValues: SpecifierValues = {
    var values = SpecifierValues()
    values.runtimeDirectory = "/run"
    values.stateDirectory = "/var/lib"
    values.userName = "root"
    values.userID = 0
    values.hostName = "machine.example"
    values.homeDirectory = "/" + String(repeating: "long/", count: 500)
    return values
}()

struct Checker {
    private(set) var violations: [String] = []

    mutating func hold(_ condition: Bool, _ sentence: @autoclosure () -> String) {
        if !condition { violations.append(sentence()) }
    }

    mutating func checkManifest(_ id: AppID, _ sources: [SourceFile]) {
        let (manifest, diagnostics) = parsedManifest(id, sources)
        let again = parsedManifest(id, sources)
        hold(again.0 == manifest && again.1 == diagnostics, "parsing is deterministic")
        check(diagnostics, of: sources, isInvalid: manifest == nil)
        checkEquivalents(id, sources, manifest)
        guard let manifest else { return }
        check(manifest)
        let text = SourceFile(path: "rendered", bytes: Array(rendered(manifest).utf8))
        let back = parsedManifest(id, [text])
        hold(back.0 == manifest, "a manifest is equal after rendering and parsing: \(rendered(manifest)) \(back.1)")
    }

    mutating func checkConfiguration(_ sources: [SourceFile]) {
        let (configuration, diagnostics) = parseConfiguration(sources: sources, memory: machineMemory)
        check(diagnostics, of: sources, isInvalid: configuration == nil)
        guard let configuration else { return }
        hold(configuration.policy.foregroundLimit > 0, "ForegroundLimit= is above 0")
        hold(0...1000 ~= configuration.policy.continuedTasks ?? 0, "ContinuedTasks= is from 0 to 1000")
        hold(configuration.policy.budget != 0, "Budget= is not 0")
        for (_, threshold) in configuration.pressureThresholds {
            hold((1...99).contains(threshold.percent), "\(threshold) is between 1 and 99 percent")
        }
    }

    private mutating func check(_ diagnostics: [Diagnostic], of sources: [SourceFile], isInvalid: Bool) {
        hold(
            diagnostics.contains { $0.severity == .error } == isInvalid,
            "a result is missing exactly if there is an error")
        hold(diagnostics.count <= 101, "the number of diagnostics is limited")
        for diagnostic in diagnostics {
            guard let source = sources.first(where: { $0.path == diagnostic.file }) else {
                violations.append("a diagnostic names a file of the input: \(diagnostic)")
                continue
            }
            let message = diagnostic.message
            hold(
                !message.isEmpty && message.utf8.count < 1000,
                "a message is not empty and has less than 1000 bytes: \(diagnostic)")
            hold(message.unicodeScalars.allSatisfy(isHarmless), "a message has no control characters: \(diagnostic)")
            guard diagnostic.line > 0 else {
                hold(
                    diagnostic.line == 0 && diagnostic.column == 0,
                    "a diagnostic without a line has no column: \(diagnostic)")
                continue
            }
            checkLocation(diagnostic, source)
        }
    }

    private mutating func checkLocation(_ diagnostic: Diagnostic, _ source: SourceFile) {
        var bytes = source.bytes[...]
        if bytes.starts(with: byteOrderMark) { bytes = bytes.dropFirst(byteOrderMark.count) }
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        guard diagnostic.line <= lines.count, (1...lines[diagnostic.line - 1].count).contains(diagnostic.column) else {
            violations.append("a location is a byte of the file: \(diagnostic)")
            return
        }
        let line = lines[diagnostic.line - 1]
        let byte = line[line.startIndex + diagnostic.column - 1]
        hold(byte != UInt8(ascii: " ") && byte != UInt8(ascii: "\t"), "a location is not a blank: \(diagnostic)")
        // Invalid UTF-8 may start with a continuation byte.
        let isText = !diagnostic.message.hasPrefix("invalid UTF-8;")
        hold(!isText || byte & 0xc0 != 0x80, "a location is the start of a character: \(diagnostic)")
    }

    private mutating func check(_ manifest: AppManifest) {
        hold(manifest.exec.first?.utf8.first == UInt8(ascii: "/"), "a program is an absolute path")
        let policy = manifest.policy
        hold((-1000...1000).contains(policy.jetsamPriority), "JetsamPriority= is in range")
        hold((-1000...1000).contains(manifest.oomScoreAdjust ?? 0), "OOMScoreAdjust= is in range")
        hold(manifest.umask <= 0o777, "UMask= is in range")
        let directories = manifest.stateDirectory + manifest.cacheDirectory + manifest.runtimeDirectory
        let texts =
            manifest.exec + manifest.environment + directories + manifest.supplementaryGroups
            + [manifest.name] + [manifest.user, manifest.group, manifest.workingDirectory].compactMap { $0 }
        hold(!texts.contains { $0.utf8.contains(0) }, "no string contains a NUL")
        hold(
            manifest.environment.allSatisfy {
                $0.utf8.contains(UInt8(ascii: "=")) && $0.utf8.first != UInt8(ascii: "=")
            }, "an environment variable has a name and a value")
        for directory in directories {
            let parts = directory.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            hold(
                parts.allSatisfy { !$0.isEmpty && !$0.elementsEqual("..".utf8) },
                "\(directory) is below its base directory")
        }
        check(manifest.sockets, policy)
        hold(manifest.limits.allSatisfy { $0.soft <= $0.hard }, "no soft limit exceeds its hard limit")
        hold(Set(manifest.limits.map(\.resource)).count == manifest.limits.count, "a resource has one limit")
        for size in [manifest.memoryMax, manifest.suspendedMemoryMax, policy.memoryHigh, policy.suspendedMemoryHigh] {
            hold(size != 0 && size ?? 0 <= Int64.max, "a size is above 0 and at most Int64.max")
        }
        hold(policy.watchdog != .zero, "WatchdogSec= is not 0")
        hold(policy.idleTime >= .milliseconds(100), "IdleSec= is at least 100ms")
        hold(policy.pulseTime >= .seconds(1), "PulseSec= is at least 1s")
        hold((1...1000).contains(policy.idleProcessorShare), "IdleCPU= is in range")
        hold((10...1_000_000).contains(policy.backgroundCPULimit), "BackgroundCPULimit= is in range")
        hold(policy.backgroundCPUTime >= .seconds(1), "BackgroundCPUSec= is at least 1s")
        hold((1...(64 << 10)).contains(policy.wakeThreshold.bytes), "WakeThreshold= is in range")
        hold(manifest.timers.count <= TimerSettings.maximumTimes, "the number of times is limited")
        hold(
            policy.hasTimers == (manifest.timers.hasTimers || manifest.timers.fetchInterval != nil),
            "the policy says whether there are timers")
        hold(policy.wakeThreshold.time != .zero, "the time of WakeThreshold= is not 0")
        let traffic = manifest.traffic ?? (policy.role == .worker)
        hold(policy.wakesOnTraffic == traffic, "input wakes workers by default, and otherwise as Traffic= says")
        hold(policy.role != .worker || policy.launchAtStart != .foreground, "no worker is launched into the foreground")
        for time in [
            policy.launchDeadline, policy.backgroundDeadline, policy.terminateDeadline, policy.extendedDeadlineMax,
            policy.backgroundTime, policy.backgroundTimePerHour, policy.expirationNotice, policy.suspendDelay,
            policy.connectionWait, policy.taskProgressTime, policy.unloadAfter, policy.watchdog, policy.idleTime,
            policy.requestTime,
            policy.pulseTime, policy.wakeThreshold.time, policy.backgroundCPUTime,
        ] {
            hold(time ?? .zero >= .zero && time ?? .zero <= .seconds(3_155_760_000), "a time span is at most 100 years")
        }
    }

    private mutating func check(_ sockets: SocketSettings, _ policy: AppPolicy) {
        hold(sockets.all.count <= AppManifest.maximumSockets, "the number of sockets is limited")
        hold(Set(sockets.all).count == sockets.all.count, "each socket is listed once")
        hold(policy.holdsSockets == !sockets.all.isEmpty, "the policy says whether there are sockets")
        hold(sockets.mode <= 0o7777 && sockets.directoryMode <= 0o7777, "SocketMode= and DirectoryMode= are in range")
        hold(policy.connectionWait ?? .seconds(1) >= .seconds(1), "ConnectionWaitSec= is at least 1s")
        hold(policy.unloadAfter ?? .seconds(1) >= .seconds(1), "UnloadAfterSec= is at least 1s")
        for socket in sockets.all {
            hold(socket.kind != .sequentialPacket || !socket.address.isInternet, "sequential packets are local")
            guard case .path(let path) = socket.address else { continue }
            let parts = path.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            hold(
                path.utf8.first == UInt8(ascii: "/") && path.utf8.count <= 107
                    && parts.allSatisfy { !$0.isEmpty && !$0.elementsEqual(".".utf8) && !$0.elementsEqual("..".utf8) },
                "\(path) is a normalized path")
        }
    }

    mutating func checkValue(_ text: String) {
        if let time = parseTimeSpan(text) {
            hold(time ?? .zero >= .zero, "no time span is negative")
            hold(
                parseTimeSpan(formatTimeSpan(time)) == .some(time),
                "\(formatTimeSpan(time)) is parsed as the same time span")
            hold(parseTimeSpan(" \(text)\t") == .some(time), "blanks around a time span change nothing")
        }
        if let size = parseSize(text) {
            hold(parseSize("\(size)") == .some(size), "\(size) is parsed as the same size")
            let shown = formatSize(size)
            let back = parseSize(shown)
            hold(
                back.map(formatSize) == shown,
                "\(size) is formatted as \(shown), which is parsed as \(String(describing: back))")
        }
        hold(
            ["ExecStart", "Type", nil].contains(nearest(text, among: ["ExecStart", "Type"])),
            "a suggestion is a known name")
        if (1...64).contains(text.utf8.count) {
            hold(nearest(text, among: ["ExecStart", text]) == text, "a known name is its own suggestion")
        }
    }
}

let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]

/// Whether a character neither controls a terminal nor changes the text direction.
private func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7f...0x9f, 0x61c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069, 0xfeff: false
    default: true
    }
}
