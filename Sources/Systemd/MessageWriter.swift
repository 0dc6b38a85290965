import CSystemd
import Posix

/// Appends values to a message that is being created.
struct MessageWriter {
    let message: OpaquePointer

    /// Appends values to a message. Values that libsystemd refuses throw: an invalid object path, an array element of another
    /// type.
    static func append(_ values: [Variant], to message: OpaquePointer) throws(BusError) {
        let writer = MessageWriter(message: message)
        for value in values { try writer.append(value) }
    }

    func append(_ value: Variant) throws(BusError) {
        switch value {
        case .byte(let number): try basic("y", number)
        case .bool(let flag): try basic("b", Int32(flag ? 1 : 0))
        case .int16(let number): try basic("n", number)
        case .uint16(let number): try basic("q", number)
        case .int32(let number): try basic("i", number)
        case .uint32(let number): try basic("u", number)
        case .int64(let number): try basic("x", number)
        case .uint64(let number): try basic("t", number)
        case .double(let number): try basic("d", number)
        case .string(let text): try string("s", text)
        case .objectPath(let text): try string("o", text)
        case .signature(let text): try string("g", text)
        case .descriptor(let descriptor): try basic("h", descriptor.raw)
        case .bytes(let bytes): try append(bytes)
        case .array(let element, let values): try container("a", element, values)
        case .dictionary(let pairs): try append(pairs)
        case .entry(let key, let value): try container("e", key.signature + value.signature, [key, value])
        case .structure(let fields): try container("r", fields.map(\.signature).joined(), fields)
        case .variant(let inner): try container("v", inner.signature, [inner])
        }
    }

    private func append(_ bytes: [UInt8]) throws(BusError) {
        let result = bytes.withUnsafeBytes {
            sd_bus_message_append_array(message, ascii("y"), $0.baseAddress, $0.count)
        }
        try BusError.check(result, "a byte array could not be written")
    }

    private func append(_ pairs: [(String, Variant)]) throws(BusError) {
        try open("a", "{sv}")
        for (key, value) in pairs {
            try open("e", "sv")
            try string("s", key)
            try container("v", value.signature, [value])
            try close()
        }
        try close()
    }

    private func container(_ type: Unicode.Scalar, _ contents: String, _ values: [Variant]) throws(BusError) {
        try open(type, contents)
        for value in values { try append(value) }
        try close()
    }

    private func open(_ type: Unicode.Scalar, _ contents: String) throws(BusError) {
        try BusError.check(
            sd_bus_message_open_container(message, ascii(type), contents),
            "a container \(type) of '\(contents)' could not be written here")
    }

    private func close() throws(BusError) {
        try BusError.check(sd_bus_message_close_container(message), "a container could not be ended")
    }

    private func basic<Number: BitwiseCopyable>(_ type: Unicode.Scalar, _ number: Number) throws(BusError) {
        let result = withUnsafeBytes(of: number) { bytes in
            sd_bus_message_append_basic(message, ascii(type), bytes.baseAddress)
        }
        try BusError.check(result, "a value of type \(type) could not be written here")
    }

    /// Appends a string. A D-Bus string cannot contain a NUL, which would cut it off: it becomes U+FFFD.
    private func string(_ type: Unicode.Scalar, _ text: String) throws(BusError) {
        let whole =
            text.utf8.contains(0)
            ? text.split(separator: "\0", omittingEmptySubsequences: false)
                .joined(separator: "\u{FFFD}") : text
        let result = whole.withCString { sd_bus_message_append_basic(message, ascii(type), $0) }
        try BusError.check(result, "'\(whole)' could not be written as a value of type \(type)")
    }
}
