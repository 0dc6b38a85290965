import LifecycleCore

/// What words of a manifest may be.

func isAccountName(_ text: String) -> Bool {
    (1...256).contains(text.utf8.count) && text.first != "-"
        && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "/") }
}

func isEnvironmentEntry(_ text: String) -> Bool {
    guard let sign = text.utf8.firstIndex(of: UInt8(ascii: "=")), text.utf8.count <= 128 << 10 else { return false }
    let name = text.utf8[..<sign]
    guard let first = name.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else { return false }
    return name.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// A folder's name below another, of several parts if need be, that can't lead out of it.
func isFolderName(_ text: String) -> Bool {
    guard (1...255).contains(text.utf8.count), !text.contains(":") else { return false }
    return text.split(separator: "/", omittingEmptySubsequences: false).allSatisfy { part in
        !part.isEmpty && part != "." && part != ".." && part.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
    }
}

/// systemd.socket(5): a port, an address and a port, a path, or an abstract name.
func isSocket(_ text: String) -> Bool {
    func isPort(_ text: Substring) -> Bool { UInt16(text).map { $0 > 0 } ?? false }
    if text.hasPrefix("/") || text.hasPrefix("@") { return (2...107).contains(text.utf8.count) }
    if isPort(Substring(text)) { return true }
    guard let colon = text.lastIndex(of: ":") else { return false }
    return isPort(text[text.index(after: colon)...]) && colon > text.startIndex
}

/// A signal that a program can catch: all but SIGKILL and SIGSTOP.
func parseCatchable(_ text: String) -> Int32? {
    parseSignal(text).flatMap { $0 == 9 || $0 == 19 ? nil : $0 }
}

func parsePercent(_ text: String) -> Int? {
    guard text.hasSuffix("%"), let first = text.utf8.first, first >= 48, first <= 57 else { return nil }
    return Int(text.dropLast()).flatMap { (0...100).contains($0) ? $0 : nil }
}

func parseAmount(_ text: String) -> MemoryAmount? {
    parsePercent(text).map { .percent($0) } ?? parseSize(text).map { .bytes($0) }
}

struct ExpansionProblem: Error { var message: String }

/// `%%` is a percent sign, `$$` a dollar sign; other specifiers and variables are refused: a program that got them as they
/// stand would be started wrongly, and nobody would know.
func expanded(_ word: String) -> Result<String, ExpansionProblem> {
    var result: [UInt8] = []
    var bytes = Array(word.utf8)[...]
    while let byte = bytes.popFirst() {
        if byte == UInt8(ascii: "%") || byte == UInt8(ascii: "$") {
            let sign = byte == UInt8(ascii: "%") ? "%" : "$"
            guard bytes.first == byte else {
                let what = sign == "%" ? "specifiers" : "variables"
                return .failure(
                    ExpansionProblem(
                        message: "“\(shown(word))”: \(what) are not expanded; write \(sign)\(sign) for a \(sign)"))
            }
            bytes = bytes.dropFirst()
        }
        result.append(byte)
    }
    return .success(String(decoding: result, as: UTF8.self))
}
