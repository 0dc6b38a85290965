/// Makes the bytes of a saved core in steps: with 10,000 apps it takes some 30 ms.
package struct CoreSaving {
    /// All but the list of apps.
    private var others: SavedCore
    private let apps: [App]
    /// How many apps were written.
    private var count = 0
    private var list = ByteWriter()
    /// Everything behind the list of apps, without the checksum.
    private var rest: ByteWriter?
    private var writer = ByteWriter()
    /// How many bytes of the list, or of the rest, are in `writer`.
    private var copied = 0
    private var checksum = Checksum()

    /// How many apps a step writes, some 3 µs each, and how many bytes it copies.
    package static let appsPerStep = 32
    package static let bytesPerStep = 1 << 16

    package init(_ saved: SavedCore) {
        apps = saved.apps
        others = saved
        others.apps = []
    }

    /// Writes the next part.
    /// - Returns: whether there is more to write.
    package mutating func advance() -> Bool {
        if count < apps.count {
            for app in apps[count..<min(apps.count, count + Self.appsPerStep)] { list.put(app) }
            count = min(apps.count, count + Self.appsPerStep)
        } else if let rest {
            if copied < list.bytes.count {
                copied += append(list.bytes[copied...])
            } else {
                let position = copied - list.bytes.count
                copied += append(rest.bytes[position...])
                if copied == list.bytes.count + rest.bytes.count {
                    let sum = checksum.value
                    writer.put(bytes: (0..<4).map { UInt8(truncatingIfNeeded: sum >> (8 * $0)) })
                    return false
                }
            }
        } else {
            beginBytes()
        }
        return true
    }

    /// All bytes, once `advance` has returned false.
    package var bytes: [UInt8] { writer.bytes }

    /// The list of apps is the first field of the record. Without apps it is left out, as any empty list.
    private mutating func beginBytes() {
        var rest = ByteWriter()
        others.save(to: &rest)
        var head = ByteWriter()
        head.put(bytes: SavedCore.magic)
        head.put(number: SavedCore.form)
        if !apps.isEmpty { head.put(listKey: SavedCore.appsField, count: list.bytes.count) }
        writer.reserve(head.bytes.count + list.bytes.count + rest.bytes.count + 4)
        append(head.bytes[...])
        self.rest = rest
    }

    @discardableResult
    private mutating func append(_ bytes: ArraySlice<UInt8>) -> Int {
        let part = bytes.prefix(Self.bytesPerStep)
        checksum.update(part)
        writer.put(bytes: part)
        return part.count
    }
}
