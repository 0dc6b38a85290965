/// CRC-32 (IEEE 802.3, as zlib's): tells a record that was half written, or overwritten, from a whole one.
package enum Checksum {
    private static let table: [UInt32] = (0..<256).map { index in
        var value = UInt32(index)
        for _ in 0..<8 { value = value & 1 == 1 ? 0xedb8_8320 ^ (value >> 1) : value >> 1 }
        return value
    }

    package static func crc32(_ bytes: [UInt8]) -> UInt32 { crc32(bytes[...]) }

    package static func crc32(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.withUnsafeBufferPointer { bytes in
            table.withUnsafeBufferPointer { table in
                var value = ~UInt32(0)
                for byte in bytes {
                    value = table[Int(UInt8(truncatingIfNeeded: value) ^ byte)] ^ (value >> 8)
                }
                return ~value
            }
        }
    }
}
