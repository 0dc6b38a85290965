import CLinux
package import Posix

/// The digest of a program file (`ProgramDigest=`).
package struct FileDigest: Equatable, CustomStringConvertible {
    package enum Kind: String, CaseIterable {
        /// SHA-256 of the contents, which are read.
        case sha256
        /// What fs-verity enforces, with SHA-256. The file is not read.
        case fsVerity = "fsverity-sha256"

        var raw: Int32 {
            switch self {
            case .sha256: Int32(CLINUX_DIGEST_SHA256.rawValue)
            case .fsVerity: Int32(CLINUX_DIGEST_FS_VERITY.rawValue)
            }
        }
    }

    package let kind: Kind
    /// 32 bytes.
    let bytes: [UInt8]

    init(_ kind: Kind, _ bytes: [UInt8]) {
        self.kind = kind
        self.bytes = bytes
    }

    /// - Parameter text: `sha256:HEX` or `fsverity-sha256:HEX`.
    package init?(_ text: String) {
        guard let colon = text.firstIndex(of: ":"), let kind = Kind(rawValue: String(text[..<colon])) else {
            return nil
        }
        let digits = text[text.index(after: colon)...].utf8.map { hexadecimalValue($0) }
        guard digits.count == 2 * Int(CLINUX_DIGEST_SIZE), !digits.contains(nil) else { return nil }
        self.kind = kind
        bytes = stride(from: 0, to: digits.count, by: 2).map { (digits[$0] ?? 0) << 4 | (digits[$0 + 1] ?? 0) }
    }

    /// Reads the digest of a regular file, which may take seconds.
    package init(of path: String, _ kind: Kind) throws(SystemError) {
        try path.refuseNul("open")
        var bytes = [UInt8](repeating: 0, count: Int(CLINUX_DIGEST_SIZE))
        let result = clinux_program_digest(path, kind.raw, &bytes)
        try check(result, kind == .sha256 ? "read" : "FS_IOC_MEASURE_VERITY", path)
        self.init(kind, bytes)
    }

    package var description: String {
        let digits = Array("0123456789abcdef".utf8)
        let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return "\(kind.rawValue):\(String(decoding: text, as: UTF8.self))"
    }
}

private func hexadecimalValue(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
}
