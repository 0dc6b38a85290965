import Glibc

extension Timestamp {
    /// The local time, in a format of strftime(3); at most 64 bytes.
    package func local(_ format: String) -> String {
        var time = time_t(clamping: microseconds / 1_000_000)
        var parts = tm()
        localtime_r(&time, &parts)
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = buffer.withUnsafeMutableBytes { raw in
            raw.withMemoryRebound(to: CChar.self) { strftime($0.baseAddress, 64, format, &parts) }
        }
        return String(decoding: buffer.prefix(count), as: UTF8.self)
    }
}
