/// Text from outside, looked at byte by byte: Swift's characters join a blank with an accent behind it, and take the Kelvin
/// sign for a K.

func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

func hexDigit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt32(byte - UInt8(ascii: "A")) + 10
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt32(byte - UInt8(ascii: "a")) + 10
    default: nil
    }
}

/// Decimal digits; `nil`: none, or more than 64 bits hold.
func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
    guard !digits.isEmpty else { return nil }
    var value: UInt64 = 0
    for digit in digits {
        guard isDigit(digit) else { return nil }
        let (tens, overflow) = value.multipliedReportingOverflow(by: 10)
        let (sum, carry) = tens.addingReportingOverflow(UInt64(digit - UInt8(ascii: "0")))
        guard !overflow, !carry else { return nil }
        value = sum
    }
    return value
}

/// Without the blanks around it.
func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var bytes = bytes.drop(while: isBlank)
    while let last = bytes.last, isBlank(last) { bytes = bytes.dropLast() }
    return bytes
}

func isASCII(_ text: String) -> Bool { text.utf8.allSatisfy { $0 < 0x80 } }

/// Words between blanks, without quotes or escapes.
func plainWords(_ text: String) -> [(text: String, offset: Int)] {
    let bytes = Array(text.utf8)
    return bytes.split(whereSeparator: isBlank).map { (String(decoding: $0, as: UTF8.self), $0.startIndex) }
}

/// Where text stops being UTF-8; `nil`: nowhere.
func firstNonUTF8(_ bytes: [UInt8]) -> Int? {
    guard String(validating: bytes, as: UTF8.self) == nil else { return nil }
    var parser = Unicode.UTF8.ForwardParser()
    var rest = bytes.makeIterator()
    var offset = 0
    while true {
        switch parser.parseScalar(from: &rest) {
        case .valid(let encoded): offset += encoded.count
        case .emptyInput, .error: return offset
        }
    }
}

/// A character that moves a terminal's cursor, breaks a line, or turns the text around. Joiners are none: Persian and some
/// emoji are not written without.
func isControl(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.value == 0x200c || scalar.value == 0x200d { return false }
    return switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
}

/// Bytes alone: `String.hasPrefix` does not find what an accent follows.
func begins(_ text: String, with prefix: String) -> Bool { text.utf8.starts(with: prefix.utf8) }

/// What somebody else wrote, in a sentence of ours: not longer than helps, and on one line.
func shown(_ text: String) -> String {
    let longest = 60
    var result = ""
    for (count, scalar) in text.unicodeScalars.enumerated() {
        guard count < longest else { return result + "…" }
        result.unicodeScalars.append(isControl(scalar) ? "�" : scalar)
    }
    return result
}

/// Other configuration files know comments behind a value.
func commentHint(_ text: String) -> String {
    let isThere = zip(text.utf8, text.utf8.dropFirst()).contains { before, sign in
        isBlank(before) && (sign == UInt8(ascii: ";") || sign == UInt8(ascii: "#"))
    }
    return isThere ? " (a comment stands on a line of its own)" : ""
}
