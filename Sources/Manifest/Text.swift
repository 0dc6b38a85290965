/// Text from outside, looked at byte by byte: Swift's characters join a blank with an accent behind it, and take the Kelvin
/// sign for a K.

func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

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

/// A character that moves a terminal's cursor, breaks a line, or turns the text around.
func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
}

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
