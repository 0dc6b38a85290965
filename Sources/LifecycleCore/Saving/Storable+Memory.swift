extension MemoryState: Storable {
    /// `apps` and `returning` follow from the apps, and are counted anew.
    func store(in writer: inout ByteWriter) {
        writer.put(size: total)
        writer.put(size: available)
        writer.put(level)
        writer.put(cause)
        for flag in [isMeasuring, isStale, awaitsMeasure] { writer.put(flag) }
        writer.put(checkAt)
        writer.put(pressure)
        writer.put(pressureUntil)
        writer.put(pressureSince)
        writer.put(pendingPressure)
        writer.put(ignorePressureUntil)
        writer.put(simulated)
        writer.put(lastWarning)
        writer.put(lastCriticalWarning)
    }

    init(from reader: inout ByteReader) throws(SavedError) {
        self.init()
        total = try reader.size()
        available = try reader.size()
        level = try reader.take()
        cause = try reader.optional()
        isMeasuring = try reader.flag()
        isStale = try reader.flag()
        awaitsMeasure = try reader.flag()
        checkAt = try reader.optional()
        pressure = try reader.take()
        pressureUntil = try reader.optional()
        pressureSince = try reader.optional()
        pendingPressure = try reader.optional()
        ignorePressureUntil = try reader.optional()
        simulated = try reader.optional()
        lastWarning = try reader.optional()
        lastCriticalWarning = try reader.optional()
    }
}

extension MemoryReading.Size: Storable {
    package func store(in writer: inout ByteWriter) {
        writer.put(run)
        writer.put(size: bytes)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init(run: try reader.take(), bytes: try reader.size())
    }
}

extension MemoryReading: Storable {
    package func store(in writer: inout ByteWriter) {
        writer.put(size: total)
        writer.put(size: available)
        writer.put(sizes)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init(
            total: try reader.size(), available: try reader.size(),
            sizes: try reader.take(upTo: SavedLimits.apps, "sizes"))
    }
}
