import LifecycleCore

/// The values of the specifiers that are the same for all apps (systemd.unit(5), "Specifiers"). The caller reads them from the
/// machine. `nil`: unknown; a setting that uses it is invalid.
package struct SpecifierValues: Hashable, Sendable {
    /// `%t`, `%S` and `%C`: the parents of the directories that `RuntimeDirectory=` and similar settings name.
    package var runtimeDirectory: String?
    package var stateDirectory: String?
    package var cacheDirectory: String?
    /// `%E`: the parent of the folder with greenroom.conf.
    package var configurationDirectory: String?
    /// `%T` and `%V`.
    package var temporaryDirectory: String?
    package var largeTemporaryDirectory: String?
    /// `%u`, `%U`, `%g`, `%G`, `%h` and `%s`: the user of the daemon, not of the app.
    package var userName: String?
    package var userID: UInt32?
    package var groupName: String?
    package var groupID: UInt32?
    package var homeDirectory: String?
    package var shell: String?
    /// `%H`, and up to its first dot `%l`.
    package var hostName: String?
    /// `%m` and `%b`: 32 hexadecimal digits.
    package var machineID: String?
    package var bootID: String?
    /// `%v`: as `uname -r` prints it.
    package var kernelRelease: String?
    /// `%a`: systemd's name of the architecture, such as `x86-64`.
    package var architecture: String?

    package init() {}
}

/// Expands the specifiers in the settings of one app, as systemd does in those of a unit.
struct Specifiers {
    let id: AppID
    let values: SpecifierValues

    /// The most bytes that specifiers may add to a text: no longer text fits into an argument or a variable.
    private static let maximumGrowth = longestArgument

    /// Replaces the specifiers in a text.
    ///
    /// - Throws: `ValueError` for a specifier that is not supported, that has no value here, or that is incomplete.
    func expanded(_ text: String) throws(ValueError) -> String {
        try expanded(text, keepingOthers: false)
    }

    /// Replaces the specifiers in a text that is only shown. A percent sign that begins none of them is kept.
    func expandedForDisplay(_ text: String) throws(ValueError) -> String {
        try expanded(text, keepingOthers: true)
    }

    private func expanded(_ text: String, keepingOthers: Bool) throws(ValueError) -> String {
        let percent = UInt8(ascii: "%")
        guard text.utf8.contains(percent) else { return text }
        var result: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == percent else {
                result.append(byte)
                continue
            }
            if rest.first == percent {
                result.append(percent)
                rest = rest.dropFirst()
            } else if let letter = rest.first, Self.supported.contains(letter) {
                result += try value(letter).utf8
                rest = rest.dropFirst()
            } else if keepingOthers {
                result.append(byte)
            } else {
                throw unsupported(rest)
            }
            guard result.count <= text.utf8.count + Self.maximumGrowth else {
                throw ValueError(problem: "the value is too long after its specifiers are replaced")
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static let supported = Array("abCEfgGhHiIjJlmnNpPsStTuUvV".utf8)

    private func unsupported(_ rest: ArraySlice<UInt8>) -> ValueError {
        let letter = rest.first.flatMap { $0 > 0x20 && $0 < 0x7f ? Character(UnicodeScalar($0)) : nil }
        let all = Self.supported.map { "%\(Character(UnicodeScalar($0)))" }.joined(separator: " ")
        return ValueError(
            problem: (letter.map { "%\($0) is no specifier that is supported" } ?? "incomplete specifier")
                + " (\(all)), and a literal % is %%")
    }

    private func value(_ letter: UInt8) throws(ValueError) -> String {
        let value: String?
        switch letter {
        case UInt8(ascii: "i"): value = id.instance ?? ""
        case UInt8(ascii: "I"): value = try unescaped(id.instance ?? "", letter)
        case UInt8(ascii: "p"): value = prefix
        case UInt8(ascii: "P"): value = try unescaped(prefix, letter)
        case UInt8(ascii: "j"): value = lastComponent
        case UInt8(ascii: "J"): value = try unescaped(lastComponent, letter)
        case UInt8(ascii: "n"): value = id.name + ".app"
        case UInt8(ascii: "N"): value = id.name
        case UInt8(ascii: "f"): value = try path()
        default: value = machineValue(letter)
        }
        guard let value else {
            throw ValueError(problem: "%\(Character(UnicodeScalar(letter))) has no value on this machine")
        }
        return value
    }

    private func machineValue(_ letter: UInt8) -> String? {
        switch letter {
        case UInt8(ascii: "t"): values.runtimeDirectory
        case UInt8(ascii: "S"): values.stateDirectory
        case UInt8(ascii: "C"): values.cacheDirectory
        case UInt8(ascii: "E"): values.configurationDirectory
        case UInt8(ascii: "T"): values.temporaryDirectory
        case UInt8(ascii: "V"): values.largeTemporaryDirectory
        case UInt8(ascii: "u"): values.userName
        case UInt8(ascii: "U"): values.userID.map { "\($0)" }
        case UInt8(ascii: "g"): values.groupName
        case UInt8(ascii: "G"): values.groupID.map { "\($0)" }
        case UInt8(ascii: "h"): values.homeDirectory
        case UInt8(ascii: "s"): values.shell
        case UInt8(ascii: "H"): values.hostName
        case UInt8(ascii: "l"): values.hostName.map { String(Substring($0.utf8.prefix { $0 != UInt8(ascii: ".") })) }
        case UInt8(ascii: "m"): values.machineID
        case UInt8(ascii: "b"): values.bootID
        case UInt8(ascii: "v"): values.kernelRelease
        case UInt8(ascii: "a"): values.architecture
        default: nil
        }
    }

    // MARK: Parts of the ID

    /// The name of the template, or the whole ID.
    private var prefix: String { id.template ?? id.name }

    /// What is behind the last hyphen of the prefix.
    private var lastComponent: String {
        guard let hyphen = prefix.utf8.lastIndex(of: UInt8(ascii: "-")) else { return prefix }
        return String(prefix[prefix.utf8.index(after: hyphen)...])
    }

    private func unescaped(_ name: String, _ letter: UInt8) throws(ValueError) -> String {
        guard let text = unescapedUnitName(name) else {
            throw ValueError(
                problem:
                    "%\(Character(UnicodeScalar(letter))): \(quoted(name)) has an invalid escape (systemd-escape(1))")
        }
        return text
    }

    /// `%f`: the unescaped instance or prefix as an absolute path. As in systemd, it is normalized or refused.
    private func path() throws(ValueError) -> String {
        let name = id.instance ?? prefix
        guard name != "-" else { return "/" }
        let path = "/" + (try unescaped(name, UInt8(ascii: "f")))
        let parts = path.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard path.utf8.count < 4096,
            parts.allSatisfy({ !$0.isEmpty && !$0.elementsEqual(".".utf8) && !$0.elementsEqual("..".utf8) })
        else { throw ValueError(problem: "%f: \(quoted(name)) is no escaped path (systemd-escape(1))") }
        return path
    }
}

/// Reverses the escapes of systemd-escape(1): `-` is a slash, and `\xNN` a byte.
///
/// - Returns: `nil` if an escape is invalid, or the result contains a NUL or is not UTF-8.
func unescapedUnitName(_ name: String) -> String? {
    var result: [UInt8] = []
    var rest = Array(name.utf8)[...]
    while let byte = rest.popFirst() {
        switch byte {
        case UInt8(ascii: "-"): result.append(UInt8(ascii: "/"))
        case UInt8(ascii: "\\"):
            let digits = rest.dropFirst().prefix(2).compactMap(hexDigit)
            guard rest.first == UInt8(ascii: "x"), digits.count == 2 else { return nil }
            result.append(UInt8(digits[0] << 4 | digits[1]))
            rest = rest.dropFirst(3)
        default: result.append(byte)
        }
    }
    guard !result.contains(0) else { return nil }
    return String(validating: result, as: UTF8.self)
}
