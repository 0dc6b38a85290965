import LifecycleCore

// Checks of single values.

/// The longest argument or variable that execve(2) accepts, in bytes without the NUL: MAX_ARG_STRLEN, 32 pages of 4 KiB.
let longestArgument = (128 << 10) - 1

/// Whether the text is a valid user or group name or number.
///
/// As in systemd, 65535 and 4294967295 are invalid: they are -1 as a 16 or 32 bit ID, and setresuid(2) with -1 leaves the
/// ID unchanged, which may be root's.
func isAccountName(_ text: String) -> Bool {
    guard (1...256).contains(text.utf8.count), let first = text.utf8.first, first != UInt8(ascii: "-") else {
        return false
    }
    if text.utf8.allSatisfy(isDigit) { return UInt32(text).map { $0 != 65_535 && $0 != .max } ?? false }
    return text != "." && text != ".."
        && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "/") }
}

/// Whether the text has the form `NAME=value`. As in systemd, any value is valid.
package func isEnvironmentEntry(_ text: String) -> Bool {
    guard let sign = text.utf8.firstIndex(of: UInt8(ascii: "=")), text.utf8.count <= longestArgument else {
        return false
    }
    guard let first = text.utf8.first, !isDigit(first), sign > text.startIndex else { return false }
    return text.utf8[..<sign].allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// Parses a relative path that cannot leave its base directory, and removes redundant parts (`./`, `//`).
func directoryName(_ text: String) -> String? {
    guard text.utf8.first != UInt8(ascii: "/"), !text.utf8.contains(UInt8(ascii: ":")) else { return nil }
    let parts = text.utf8.split(separator: UInt8(ascii: "/")).filter { !$0.elementsEqual(".".utf8) }
    guard parts.allSatisfy({ !$0.elementsEqual("..".utf8) && $0.allSatisfy { $0 >= 0x20 && $0 != 0x7f } }) else {
        return nil
    }
    let name = parts.map { String(Substring($0)) }.joined(separator: "/")
    return (1...255).contains(name.utf8.count) ? name : nil
}

/// Whether the text is an absolute path that open(2) accepts: PATH_MAX is 4096 bytes with the NUL.
func isAbsolutePath(_ text: String) -> Bool { text.utf8.first == UInt8(ascii: "/") && text.utf8.count < 4096 }

/// Whether the text is an absolute path without the parts `.` and `..`.
func isNormalizedPath(_ text: String) -> Bool {
    isAbsolutePath(text)
        && !text.utf8.split(separator: UInt8(ascii: "/")).contains {
            $0.elementsEqual("..".utf8) || $0.elementsEqual(".".utf8)
        }
}

/// Whether the text is a valid display name: 1 to 256 bytes without control characters.
func isDisplayName(_ text: String) -> Bool {
    (1...256).contains(text.utf8.count) && !text.unicodeScalars.contains(where: isControl)
}

/// What logind accepts (systemd: `seat_name_is_valid` in src/login/logind-seat.c).
func isSeatName(_ text: String) -> Bool {
    text.hasPrefix("seat") && (5...255).contains(text.utf8.count)
        && text.unicodeScalars.allSatisfy {
            $0.isASCII && ($0.properties.isAlphabetic || "0"..."9" ~= $0 || $0 == "_" || $0 == "-")
        }
}

/// Parses a size in bytes or a percentage of the machine's memory.
///
/// - Parameter memory: the machine's memory in bytes, or `nil` if unknown.
func parseAmount(_ text: String, memory: UInt64?) throws(ValueError) -> MemoryAmount? {
    guard let permyriad = parsePermyriad(text) else { return parseSize(text).map { .bytes($0) } }
    guard permyriad % 100 != 0 else { return .percent(permyriad / 100) }
    guard let memory else { throw unknownMemory }
    return .bytes(memory / 10_000 * UInt64(permyriad))
}

/// Parses a size as `parseAmount` does and converts it to bytes.
func parseBytes(_ text: String, memory: UInt64?) throws(ValueError) -> UInt64? {
    switch try parseAmount(text, memory: memory) {
    case .bytes(let bytes): return bytes
    case .percent(let percent):
        guard let memory else { throw unknownMemory }
        return MemoryAmount.percent(percent).bytes(of: memory)
    case nil: return nil
    }
}

private let unknownMemory = ValueError(problem: "cannot use a percentage: the size of the machine's memory is unknown")

/// Parses a resource limit: one value for both limits, or `soft:hard`.
///
/// - Returns: `nil` if it is invalid or the soft limit exceeds the hard limit.
func parseLimits(_ text: String, _ parse: (String) -> UInt64?) -> (soft: UInt64, hard: UInt64)? {
    let parts = text.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false).map { part -> UInt64? in
        part == "infinity" ? .max : parse(String(part))
    }
    guard (1...2).contains(parts.count), let soft = parts[0], let hard = parts.last ?? nil, soft <= hard else {
        return nil
    }
    return (soft, hard)
}

/// Parses the time span of `LimitCPU=` in seconds, rounded up as in systemd.
func parseSeconds(_ text: String) -> UInt64? {
    guard let time = parseTimeSpan(text) ?? nil else { return nil }
    return UInt64(time.components.seconds) + (time.components.attoseconds > 0 ? 1 : 0)
}

/// Parses a decimal number without a unit.
func parseCount(_ text: String) -> UInt64? { number(Array(text.utf8)[...]) }
