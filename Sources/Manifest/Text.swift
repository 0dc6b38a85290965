// These functions compare bytes: as Swift characters, a blank and a combining accent after it are one character, and the
// Kelvin sign equals K.

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

/// Parses decimal digits.
///
/// - Returns: `nil` if there are none, another character, or a value above 64 bits.
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

/// Removes blanks at both ends.
func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var bytes = bytes.drop(while: isBlank)
    while let last = bytes.last, isBlank(last) { bytes = bytes.dropLast() }
    return bytes
}

func isASCII(_ text: String) -> Bool { text.utf8.allSatisfy { $0 < 0x80 } }

/// Splits text at blanks, without quoting or escapes. The offsets are in bytes.
func plainWords(_ text: String) -> [(text: String, offset: Int)] {
    let bytes = Array(text.utf8)
    return bytes.split(whereSeparator: isBlank).map { (String(decoding: $0, as: UTF8.self), $0.startIndex) }
}

/// Returns the offset of the first byte that is not valid UTF-8, or `nil` if all are.
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

/// Whether a character can control a terminal, break a line or change the text direction.
///
/// The joiners U+200C and U+200D are not control characters here: Persian text and some emoji need them.
func isControl(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.value == 0x200c || scalar.value == 0x200d { return false }
    return switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
}

/// Compares bytes: `String.hasPrefix` does not find a prefix that a combining accent follows.
func begins(_ text: String, with prefix: String) -> Bool { text.utf8.starts(with: prefix.utf8) }

/// Text of a file for a message, in single quotes.
func quoted(_ text: String) -> String { "'\(sanitized(text))'" }

/// Text of a file for a message: without control characters, and at most 60 characters long.
func sanitized(_ text: String) -> String {
    let longest = 60
    var result = ""
    for (count, scalar) in text.unicodeScalars.enumerated() {
        guard count < longest else { return result + "…" }
        result.unicodeScalars.append(isControl(scalar) ? "�" : scalar)
    }
    return result
}

/// A hint for values that contain `#` or `;` after a blank: a comment at the end of a line is not supported.
func commentHint(_ text: String) -> String {
    let hasComment = zip(text.utf8, text.utf8.dropFirst()).contains { before, sign in
        isBlank(before) && (sign == UInt8(ascii: ";") || sign == UInt8(ascii: "#"))
    }
    return hasComment ? " (a comment must be on a line of its own)" : ""
}
