import Idleness
import LifecycleCore
import Linux
import Posix
import Systemd
import Testing

@testable import Daemon

@Suite("The record of a run")
struct RunRecordTests {
    private func makeRecord() throws -> RunRecord {
        var record = RunRecord(app: try #require(AppID("photos")))
        record.pid = 1234
        record.startTime = 5_678_901
        record.marker = "GREENROOM_RUN=7"
        record.owner = Owner(uid: 1000, gid: 100)
        record.statusText = String(repeating: "x", count: NotifyDatagram.maximumStatus)
        record.errno = -1
        record.outputStart = 1 << 40
        record.hook = HookRecord(number: 4, position: 2, pid: 99, startTime: 1 << 40)
        record.rests = KeptRests(
            attempt: 3,
            all: [
                KeptRest(
                    process: 1234, thread: 1235,
                    wait: Wait(call: 23, arguments: [5, 0, 0, 0, .max, 7], due: .seconds(100)))
            ])
        record.relay = RelayRecord(
            pid: 77, startTime: 88, hasTerminal: true, client: RunClientRecord(pid: 76, name: "claude", program: "node")
        )
        record.notices = NoticeQueue(
            waiting: [.willResignActive(.background), .memoryWarning(.critical), .willTerminate], isSending: true,
            lastEffect: EffectID(event: 1 << 40, index: 3))
        return record
    }

    @Test("a record is read as it was written, with a status of the greatest length")
    func roundTrip() throws {
        let record = try makeRecord()
        let read = try RunRecord(reading: record.bytes)
        #expect(read == record)
        #expect(read.notices == record.notices && read.statusText == record.statusText && read.owner == record.owner)
        #expect(read.hook == record.hook && read.hook?.position == 2)
        #expect(read.outputStart == 1 << 40 && read.rests == record.rests && read.rests?.all.count == 1)
        #expect(read.relay == record.relay && read.relay?.client?.program == "node")
        let empty = RunRecord(app: record.app)
        let readEmpty = try RunRecord(reading: empty.bytes)
        #expect(readEmpty.pid == nil && readEmpty.owner == nil && readEmpty.errno == nil)
        #expect(readEmpty.notices == NoticeQueue())
    }

    @Test("a status text that is too long or not UTF-8 is cut off or repaired, and the rest of the record is read")
    func badStatus() throws {
        var record = RunRecord(app: try #require(AppID("photos")))
        record.pid = 1234
        record.errno = 5
        let valid = record.bytes
        // Field 7 goes before field 8, which has three bytes: its key and a number of two bytes.
        func insert(_ text: [UInt8]) -> [UInt8] {
            var writer = ByteWriter()
            writer.put(number: 7 << 1 | 1)
            writer.put(number: UInt64(text.count))
            writer.put(bytes: text)
            let position = valid.lastIndex(of: 8 << 1)!
            return valid[..<position] + writer.bytes + valid[position...]
        }
        for text in [[UInt8](repeating: 0x78, count: 100_000), [0xff, 0xfe], Array("a\u{202e}b".utf8)] {
            let read = try RunRecord(reading: insert(text))
            #expect(read.pid == 1234 && read.errno == 5)
            let status = try #require(read.statusText)
            #expect(
                status.utf8.count <= NotifyDatagram.maximumStatus && !status.unicodeScalars.contains(where: \.isControl)
            )
        }
    }

    @Test("a queue with one notice more than the capacity is read: it is recorded before all are sent")
    func largest() throws {
        var record = try makeRecord()
        let waiting = [Notice](repeating: .didBecomeActive(.return), count: NoticeQueue.capacity + 1)
        record.notices = NoticeQueue(waiting: waiting, isSending: false, lastEffect: .none)
        #expect(try RunRecord(reading: record.bytes).notices.waiting.count == NoticeQueue.capacity + 1)
    }

    @Test("fields of a newer version are ignored")
    func newerFields() throws {
        let record = try makeRecord()
        // Field 60 with the number 5, and field 61 with three bytes.
        let bytes = record.bytes + [60 << 1, 5, 61 << 1 | 1, 3, 1, 2, 3]
        #expect(try RunRecord(reading: bytes) == record)
    }

    @Test("a notice that only a newer version knows is ignored, and the others are read")
    func newerNotice() throws {
        var record = try makeRecord()
        record.notices = NoticeQueue(waiting: [.willTerminate], isSending: true, lastEffect: .none)
        let known = record.bytes
        // The list of notices is field 1 of the queue, and each element ends with the number of the case.
        let position = try #require(try newCase(in: known))
        var bytes = known
        bytes[position] = 0x7f
        let read = try RunRecord(reading: bytes)
        #expect(read.notices.isEmpty && !read.notices.isSending)
        #expect(read.pid == record.pid)
    }

    /// The position of the number of the only notice's case: the byte that changes with another notice.
    private func newCase(in bytes: [UInt8]) throws -> Int? {
        var other = try makeRecord()
        other.notices = NoticeQueue(waiting: [.willEnterForeground], isSending: true, lastEffect: .none)
        return zip(bytes, other.bytes).enumerated().first { $0.element.0 != $0.element.1 }?.offset
    }
}
