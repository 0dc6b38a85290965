/// CRC-32 (IEEE 802.3, as zlib's): tells a record that was half written, or overwritten, from a whole one.
package struct Checksum {
    private var state = ~UInt32(0)

    package init() {}

    /// The checksum of all bytes so far.
    package var value: UInt32 { ~state }

    /// Adds the next bytes.
    package mutating func update(_ bytes: ArraySlice<UInt8>) {
        state = bytes.withUnsafeBufferPointer { bytes in
            Self.table.withUnsafeBufferPointer { table in
                var value = state
                for byte in bytes {
                    value = table[Int(UInt8(truncatingIfNeeded: value) ^ byte)] ^ (value >> 8)
                }
                return value
            }
        }
    }

    private static let table: [UInt32] = (0..<256).map { index in
        var value = UInt32(index)
        for _ in 0..<8 { value = value & 1 == 1 ? 0xedb8_8320 ^ (value >> 1) : value >> 1 }
        return value
    }

    package static func crc32(_ bytes: [UInt8]) -> UInt32 { crc32(bytes[...]) }

    package static func crc32(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        var checksum = Checksum()
        checksum.update(bytes)
        return checksum.value
    }
}
