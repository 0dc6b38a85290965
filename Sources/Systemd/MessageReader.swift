import CSystemd
import Glibc
import Posix

/// The limits of an incoming message. libsystemd checks the form of a message (signatures, UTF-8, lengths), but allows
/// 128 MiB and 128 nested containers.
package struct MessageLimits: Sendable {
    /// Nested containers. The deepest of the control interface, an `a{sv}` in an `a{oa{sa{sv}}}`, takes eight.
    package var depth = 32
    /// Values in total, with containers: a list of 1,000 apps with 20 properties each takes about 60,000.
    package var values = 100_000
    /// Bytes of text and byte arrays in total. A snapshot of 8 MiB is passed in a memfd instead.
    package var bytes = 4 << 20

    package init() {}

    /// The limits of an answer to a client: a list of 10,000 apps, the maximum, takes about a million values.
    package static var ofAnswers: MessageLimits {
        var limits = MessageLimits()
        limits.values = 4_000_000
        limits.bytes = 64 << 20
        return limits
    }
}

/// Reads the values of a message by its signature, within limits.
struct MessageReader {
    private let message: OpaquePointer
    private let limits: MessageLimits
    private var values = 0
    private var bytes = 0

    init(_ message: OpaquePointer, limits: MessageLimits = MessageLimits()) {
        self.message = message
        self.limits = limits
    }

    /// Reads all values of the message.
    static func read(_ message: OpaquePointer, limits: MessageLimits = MessageLimits()) throws(BusError) -> [Variant] {
        try BusError.check(sd_bus_message_rewind(message, 1), "the message could not be read")
        var reader = MessageReader(message, limits: limits)
        return try reader.readAll(depth: 0)
    }

    /// Reads the values before the first descriptor (`h`) among the arguments.
    static func readBeforeDescriptors(
        _ message: OpaquePointer, limits: MessageLimits = MessageLimits()
    ) throws(BusError) -> [Variant] {
        try BusError.check(sd_bus_message_rewind(message, 1), "the message could not be read")
        var reader = MessageReader(message, limits: limits)
        var values: [Variant] = []
        var type: CChar = 0
        while sd_bus_message_peek_type(message, &type, nil) > 0, type != ascii("h"),
            let value = try reader.readNext(depth: 0)
        {
            values.append(value)
        }
        return values
    }

    /// Reads the next value, which is a descriptor. The message closes its own; the result is a duplicate.
    static func readDescriptor(_ message: OpaquePointer) throws(BusError) -> SharedDescriptor {
        var descriptor: Int32 = -1
        try BusError.check(
            withUnsafeMutableBytes(of: &descriptor) {
                sd_bus_message_read_basic(message, ascii("h"), $0.baseAddress)
            }, "a descriptor could not be read")
        do throws(SystemError) {
            return SharedDescriptor(try Descriptor.duplicate(of: descriptor))
        } catch {
            throw .failed("a descriptor could not be duplicated: \(error)")
        }
    }

    /// Reads the values after those that were read before.
    static func readRest(
        _ message: OpaquePointer, limits: MessageLimits = MessageLimits()
    ) throws(BusError) -> [Variant] {
        var reader = MessageReader(message, limits: limits)
        return try reader.readAll(depth: 0)
    }

    /// Reads the values up to the end of the open container or message.
    private mutating func readAll(depth: Int) throws(BusError) -> [Variant] {
        var result: [Variant] = []
        while let value = try readNext(depth: depth) { result.append(value) }
        return result
    }

    private mutating func readNext(depth: Int) throws(BusError) -> Variant? {
        var type: CChar = 0
        var contents: UnsafePointer<CChar>?
        let more = try BusError.check(
            sd_bus_message_peek_type(message, &type, &contents), "the message's signature could not be read")
        guard more > 0 else { return nil }
        values += 1
        guard values <= limits.values else { throw .limit("more than \(limits.values) values") }
        guard let contents else { return try readBasic(type) }
        guard depth < limits.depth else { throw .limit("containers nested deeper than \(limits.depth)") }
        return try readContainer(type, contents, depth: depth + 1)
    }

    private mutating func readContainer(
        _ type: CChar, _ contents: UnsafePointer<CChar>, depth: Int
    ) throws(BusError) -> Variant {
        // The string belongs to the message and may be released when the container is entered.
        let inner = String(cString: contents)
        if type == ascii("a") && inner == "y" { return .bytes(try readBytes()) }
        try BusError.check(
            sd_bus_message_enter_container(message, type, contents), "a container could not be entered")
        let result = try readInside(type, inner, depth: depth)
        try BusError.check(sd_bus_message_exit_container(message), "a container could not be left")
        return result
    }

    private mutating func readInside(_ type: CChar, _ inner: String, depth: Int) throws(BusError) -> Variant {
        if type == ascii("a") && inner == "{sv}" { return .dictionary(try readPairs(depth: depth)) }
        let inside = try readAll(depth: depth)
        if type == ascii("a") { return .array(inner, inside) }
        if type == ascii("r") { return .structure(inside) }
        if type == ascii("e"), inside.count == 2 { return .entry(inside[0], inside[1]) }
        if type == ascii("v"), inside.count == 1 { return .variant(inside[0]) }
        throw .invalid("a container of type \(type) with \(inside.count) values")
    }

    /// Reads the entries of an `a{sv}`.
    private mutating func readPairs(depth: Int) throws(BusError) -> [(String, Variant)] {
        var pairs: [(String, Variant)] = []
        for element in try readAll(depth: depth) {
            guard case .entry(.string(let key), .variant(let value)) = element else {
                throw .invalid("an a{sv} with an element of type \(element.signature)")
            }
            pairs.append((key, value))
        }
        return pairs
    }

    private mutating func readBytes() throws(BusError) -> [UInt8] {
        var start: UnsafeRawPointer?
        var size = 0
        try BusError.check(
            sd_bus_message_read_array(message, ascii("y"), &start, &size), "a byte array could not be read")
        try count(bytes: size)
        return Array(UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : size))
    }

    private mutating func readBasic(_ type: CChar) throws(BusError) -> Variant {
        switch UInt8(bitPattern: type) {
        case UInt8(ascii: "y"): .byte(try number(type, 0))
        case UInt8(ascii: "b"): .bool(try number(type, Int32(0)) != 0)
        case UInt8(ascii: "n"): .int16(try number(type, 0))
        case UInt8(ascii: "q"): .uint16(try number(type, 0))
        case UInt8(ascii: "i"): .int32(try number(type, 0))
        case UInt8(ascii: "u"): .uint32(try number(type, 0))
        case UInt8(ascii: "x"): .int64(try number(type, 0))
        case UInt8(ascii: "t"): .uint64(try number(type, 0))
        case UInt8(ascii: "d"): .double(try number(type, 0))
        case UInt8(ascii: "s"): .string(try text(type))
        case UInt8(ascii: "o"): .objectPath(try text(type))
        case UInt8(ascii: "g"): .signature(try text(type))
        case UInt8(ascii: "h"): throw .invalid("a file descriptor, which is not accepted here")
        default: throw .invalid("a value of the unknown type \(type)")
        }
    }

    private func number<Number: BitwiseCopyable>(_ type: CChar, _ zero: Number) throws(BusError) -> Number {
        var value = zero
        let result = withUnsafeMutableBytes(of: &value) { bytes in
            sd_bus_message_read_basic(message, type, bytes.baseAddress)
        }
        try BusError.check(result, "a number could not be read")
        return value
    }

    private mutating func text(_ type: CChar) throws(BusError) -> String {
        var value: UnsafePointer<CChar>?
        let result = withUnsafeMutableBytes(of: &value) { bytes in
            sd_bus_message_read_basic(message, type, bytes.baseAddress)
        }
        try BusError.check(result, "a string could not be read")
        guard let value else { throw .invalid("a string without a value") }
        try count(bytes: strlen(value))
        return String(cString: value)
    }

    private mutating func count(bytes more: Int) throws(BusError) {
        bytes += more
        guard bytes <= limits.bytes else { throw .limit("more than \(limits.bytes) bytes of text") }
    }
}

/// Returns a D-Bus type character as a C char.
func ascii(_ character: Unicode.Scalar) -> CChar {
    CChar(bitPattern: UInt8(ascii: character))
}
