extension HeldSocket.Address {
    /// Parses an address as systemd.socket(5) describes it.
    ///
    /// systemd also accepts ports such as `+80` and `0x50`, and paths with `..` or with a slash at the end; they are refused
    /// here. A path is stored without empty parts and `.`, and an address without its optional zeros, so that equal addresses
    /// are equal values.
    ///
    /// - Throws: `ValueError`; its `problem` is `nil` if the text has none of the forms.
    init(parsing text: String) throws(ValueError) {
        guard !text.unicodeScalars.contains(where: isControl) else {
            throw ValueError(problem: "\(quoted(text)) contains a control character")
        }
        switch text.utf8.first {
        case UInt8(ascii: "/"): self = .path(try socketPath(text))
        case UInt8(ascii: "@"):
            let name = String(text.unicodeScalars.dropFirst())
            try refuseLong(text)
            guard !name.isEmpty else { throw ValueError() }
            self = .abstract(name)
        default: self = try Self.internet(text)
        }
    }

    private static func internet(_ text: String) throws(ValueError) -> Self {
        guard !begins(text, with: "vsock:") else { throw ValueError(problem: "vsock addresses are not supported") }
        let bytes = Array(text.utf8)[...]
        guard let colon = bytes.lastIndex(of: UInt8(ascii: ":")) else {
            guard let port = socketPort(bytes) else { throw ValueError() }
            return .port(port)
        }
        let (address, digits) = (bytes[..<colon], bytes[(colon + 1)...])
        if address.first == UInt8(ascii: "["), address.last == UInt8(ascii: "]") {
            guard !bytes.contains(UInt8(ascii: "%")) else {
                throw ValueError(problem: "interface scopes are not supported")
            }
            if let port = socketPort(digits), let groups = ipv6Groups(address.dropFirst().dropLast()) {
                return .ipv6(ipv6Text(groups), port)
            }
        } else if let port = socketPort(digits), ipv4Bytes(address) != nil {
            return .ipv4(String(decoding: address, as: UTF8.self), port)
        }
        throw ValueError()
    }

    /// Parses an address of the command line. `nil`: it has none of the forms.
    package init?(argument text: String) {
        guard let address = try? Self(parsing: text) else { return nil }
        self = address
    }

    /// Whether it can be bound for IPv6.
    var mayBeIPv6: Bool {
        switch self {
        case .port, .ipv6: true
        case .ipv4, .path, .abstract: false
        }
    }

    /// Whether it is an address of IPv4 or IPv6.
    package var isInternet: Bool {
        switch self {
        case .port, .ipv4, .ipv6: true
        case .path, .abstract: false
        }
    }
}

/// `sun_path` has 108 bytes, with the NUL before an abstract name or after a path (unix(7)); systemd ends abstract names with
/// one, too.
private let longestUnixAddress = 107

private func refuseLong(_ address: String) throws(ValueError) {
    let size = address.utf8.count
    guard size <= longestUnixAddress else {
        throw ValueError(problem: "an address of \(size) bytes exceeds the maximum of \(longestUnixAddress)")
    }
}

/// The path of a socket without empty parts and `.`. As in systemd, /var/run is /run.
private func socketPath(_ text: String) throws(ValueError) -> String {
    guard text.utf8.count > 1, text.utf8.last != UInt8(ascii: "/") else { throw ValueError() }
    var parts = text.utf8.split(separator: UInt8(ascii: "/")).filter { !$0.elementsEqual(".".utf8) }
    guard !parts.contains(where: { $0.elementsEqual("..".utf8) }) else {
        throw ValueError(problem: "\(quoted(text)) contains '..'")
    }
    if parts.count > 2, parts[0].elementsEqual("var".utf8), parts[1].elementsEqual("run".utf8) { parts.removeFirst() }
    let path = parts.map { "/" + String(Substring($0)) }.joined()
    guard !path.isEmpty else { throw ValueError() }
    try refuseLong(path)
    return path
}

/// Decimal digits without leading zeros, from 1 to 65535.
private func socketPort(_ digits: ArraySlice<UInt8>) -> UInt16? {
    guard digits.first != UInt8(ascii: "0") else { return nil }
    return number(digits).flatMap { UInt16(exactly: $0) }
}

/// Parses four decimal numbers without leading zeros, as inet_pton(3) does.
private func ipv4Bytes(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let bytes = parts.compactMap { part in
        part.count > 1 && part.first == UInt8(ascii: "0") ? nil : number(part).flatMap { UInt8(exactly: $0) }
    }
    return parts.count == 4 && bytes.count == 4 ? bytes : nil
}

/// Parses an IPv6 address as inet_pton(3) does: eight groups of up to four hexadecimal digits, of which `::` replaces one or
/// more zeros, and the last two may be an IPv4 address.
private func ipv6Groups(_ text: ArraySlice<UInt8>) -> [UInt16]? {
    var parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard parts.count >= 3 else { return nil }
    // `::` at an end leaves two empty parts there, and elsewhere one.
    if parts[0].isEmpty {
        guard parts[1].isEmpty else { return nil }
        parts.removeFirst()
    }
    if parts[parts.count - 1].isEmpty, parts.count > 1 {
        guard parts[parts.count - 2].isEmpty else { return nil }
        parts.removeLast()
    }
    var groups: [UInt16] = []
    var gap: Int?
    for (index, part) in parts.enumerated() {
        if part.isEmpty {
            guard gap == nil else { return nil }
            gap = groups.count
        } else if index == parts.count - 1, part.contains(UInt8(ascii: ".")) {
            guard let bytes = ipv4Bytes(part) else { return nil }
            groups += [UInt16(bytes[0]) << 8 | UInt16(bytes[1]), UInt16(bytes[2]) << 8 | UInt16(bytes[3])]
        } else {
            let digits = part.compactMap(hexDigit)
            guard digits.count == part.count, digits.count <= 4 else { return nil }
            groups.append(UInt16(digits.reduce(0) { $0 << 4 | $1 }))
        }
    }
    guard let gap else { return groups.count == 8 ? groups : nil }
    guard groups.count < 8 else { return nil }
    groups.insert(contentsOf: repeatElement(0, count: 8 - groups.count), at: gap)
    return groups
}

/// Formats an IPv6 address as inet_ntop(3) does: the first of the longest runs of two or more zeros is `::`.
private func ipv6Text(_ groups: [UInt16]) -> String {
    var best = 0..<0
    var start = 0
    for index in groups.indices {
        if groups[index] != 0 { start = index + 1 }
        if index + 1 - start > best.count { best = start..<(index + 1) }
    }
    if best.count < 2 { best = 0..<0 }
    func hexadecimal(_ groups: ArraySlice<UInt16>) -> String {
        groups.map { String($0, radix: 16) }.joined(separator: ":")
    }
    // ::1.2.3.4 and ::ffff:1.2.3.4.
    if best == 0..<6 || (best == 0..<5 && groups[5] == 0xffff) {
        let bytes = groups[6...].flatMap { [$0 >> 8, $0 & 0xff] }.map { "\($0)" }
        return (best.count == 6 ? "::" : "::ffff:") + bytes.joined(separator: ".")
    }
    guard !best.isEmpty else { return hexadecimal(groups[...]) }
    return hexadecimal(groups[..<best.lowerBound]) + "::" + hexadecimal(groups[best.upperBound...])
}
