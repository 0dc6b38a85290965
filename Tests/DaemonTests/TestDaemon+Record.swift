import LifecycleCore
import Linux
import Posix

@testable import Daemon

extension TestDaemon {
    /// The record of a run as the next daemon would find it; `nil`: there is none.
    func runRecord() throws -> RunRecord? {
        // A copy, because the reader counts its own death in the file.
        let copy = root + "/logbook"
        try replaceFile(at: copy, with: readFile(at: runtime + "/logbook", limit: 1 << 28))
        defer { MappedFile.stopCountingOwnEnd() }
        let records = try Logbook.read(at: copy)?.records ?? [:]
        return try records.first { RunRecord.run(named: $0.key) != nil }.map { try RunRecord(reading: $0.value) }
    }
}
