import Glibc
import JSON
import LifecycleCore
import TestKit
import Testing

@testable import Timeline

/// Tests/perfetto/check reads a trace with Perfetto's own classes. This reads the wire format without them.
@Suite("Perfetto traces")
struct PerfettoTests {
    /// The fields of a message: numbers, or bytes.
    private enum Field: Equatable {
        case number(UInt64)
        case bytes(ArraySlice<UInt8>)

        var number: UInt64 { if case .number(let number) = self { number } else { 0 } }
        var bytes: ArraySlice<UInt8> { if case .bytes(let bytes) = self { bytes } else { [] } }
        var text: String { String(decoding: bytes, as: UTF8.self) }
    }

    private static func decode(_ bytes: ArraySlice<UInt8>) -> [(field: UInt64, value: Field)] {
        var rest = bytes
        func varint() -> UInt64 {
            var (value, shift) = (UInt64(0), UInt64(0))
            while let byte = rest.popFirst() {
                value |= UInt64(byte & 0x7f) << shift
                shift += 7
                if byte < 0x80 { break }
            }
            return value
        }
        var fields: [(UInt64, Field)] = []
        while !rest.isEmpty {
            let key = varint()
            switch key & 7 {
            case 0: fields.append((key >> 3, .number(varint())))
            case 1:
                fields.append((key >> 3, .number(rest.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) })))
                rest = rest.dropFirst(8)
            default:
                let count = Int(varint())
                fields.append((key >> 3, .bytes(rest.prefix(count))))
                rest = rest.dropFirst(count)
            }
        }
        return fields
    }

    private struct TrackEvent {
        var at: UInt64
        var type: UInt64
        var track: UInt64
        var name: String
        var flow: UInt64?
        var flowEnd: UInt64?
    }

    @Test("slices are nested in each track, events are in the order of time, and each flow has two ends")
    func trace() throws {
        var story = Story()
        story.runOutOfMemory()
        let timeline = Story.timeline([story.recorder.file()])
        var writer = PerfettoTrace(timeline)
        var names: [UInt64: String] = [:]
        var parents: [UInt64: UInt64] = [:]
        var events: [TrackEvent] = []
        for (field, packet) in Self.decode(writer.serialized()[...]) {
            try #require(field == 1)
            let fields = Self.decode(packet.bytes)
            func first(_ number: UInt64, in list: [(field: UInt64, value: Field)]) -> Field? {
                list.first { $0.field == number }?.value
            }
            if let descriptor = first(60, in: fields).map({ Self.decode($0.bytes) }) {
                let id = try #require(first(1, in: descriptor)).number
                names[id] = first(2, in: descriptor)?.text
                parents[id] = first(5, in: descriptor)?.number
            }
            guard let event = first(11, in: fields).map({ Self.decode($0.bytes) }) else { continue }
            events.append(
                TrackEvent(
                    at: try #require(first(8, in: fields)).number, type: first(9, in: event)?.number ?? 0,
                    track: first(11, in: event)?.number ?? 0, name: first(23, in: event)?.text ?? "",
                    flow: first(47, in: event)?.number, flowEnd: first(48, in: event)?.number))
        }
        #expect(zip(events, events.dropFirst()).allSatisfy { $0.at <= $1.at })
        #expect(events.allSatisfy { names[$0.track] != nil } && parents.values.allSatisfy { names[$0] != nil })
        var open: [UInt64: [String]] = [:]
        var deepest = 0
        for event in events where event.type == 1 || event.type == 2 {
            if event.type == 1 {
                open[event.track, default: []].append(event.name)
                deepest = max(deepest, open[event.track]?.count ?? 0)
            } else {
                #expect(open[event.track]?.popLast() != nil)
            }
            #expect((open[event.track] ?? []).count <= 2)
        }
        #expect(open.values.allSatisfy(\.isEmpty) && deepest == 2)
        let (flows, ends) = (events.compactMap(\.flow), events.compactMap(\.flowEnd))
        #expect(flows.sorted() == ends.sorted() && flows.count == timeline.arrows.count)
        let web = try #require(names.first { $0.value == "web" }?.key)
        let states = events.filter { $0.track == web && $0.type == 1 && $0.name != "run" }.map(\.name)
        #expect(states == timeline.lanes.last?.states.map(\.label))
    }

    /// A Python that has Perfetto's classes: `make test-all` names one, with which the test is not left out.
    private static let given = getenv("GREENROOM_PERFETTO_PYTHON").map { String(cString: $0) }
    private static let python = given ?? "python3"
    private static let hasClasses = given != nil || system("\(python) -c 'import perfetto.protos' 2>/dev/null") == 0

    @Test(
        "Perfetto's own classes read the same as the document has",
        .enabled(if: hasClasses, "Perfetto's classes are not installed"))
    func classes() throws {
        var story = Story()
        story.runOutOfMemory()
        let timeline = Story.timeline([story.recorder.file()])
        let folder = makeTemporaryFolder("greenroom-perfetto")
        defer { removeTree(folder) }
        var trace = PerfettoTrace(timeline)
        for (name, bytes) in [
            ("trace", trace.serialized()), ("json", Array(timeline.json.serialized(pretty: false).utf8)),
        ] {
            let file = try #require(fopen("\(folder)/\(name)", "w"))
            #expect(fwrite(bytes, 1, bytes.count, file) == bytes.count)
            fclose(file)
        }
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        #expect(
            system("\(Self.python) /\(root)/Tests/perfetto/check \(folder)/trace \(folder)/json >\(folder)/output") == 0
        )
    }
}
