import LifecycleCore
import Testing

@testable import Timeline

@Suite("A recording that cannot be played")
struct DamageTests {
    private static func problems(_ files: [[UInt8]]) -> [String] { Story.play(files).problems }

    @Test("a file that is cut says so, and is played as far as it goes")
    func cut() {
        var story = Story()
        let file = story.recorder.file()
        let whole = Story.play([file])
        for count in stride(from: 0, to: file.count, by: 97) {
            let player = Story.play([Array(file.prefix(count))])
            #expect(player.problems.count == 1 && player.events < whole.events)
            #expect(player.problems[0].hasPrefix("1: ") || player.problems[0].hasPrefix("1 is "))
        }
        // In an entry, and between two.
        for count in 1..<100 {
            #expect(Self.problems([Array(file.dropLast(count))])[0].hasSuffix("what follows is missing"))
        }
        #expect(whole.problems.isEmpty)
    }

    @Test("a damaged file says where, and the files behind it are played")
    func damaged() {
        var story = Story()
        var first = story.recorder.file()
        story.runOutOfMemory()
        let second = story.recorder.file()
        first[first.count - 20] ^= 1
        let problems = Self.problems([first, second])
        #expect(problems.count == 2)
        #expect(problems[0].contains("the entry is damaged; the events that follow in this file are left out"))
        #expect(problems[1].hasSuffix("events before 2 are missing"))
        let timeline = Story.timeline([first, second])
        #expect(timeline.arrows.contains { $0.from == .memory })
    }

    @Test("whatever the bytes are, reading them ends")
    func anyBytes() {
        var story = Story()
        let file = story.recorder.file()
        for offset in stride(from: 0, to: file.count, by: 31) {
            var bytes = file
            bytes[offset] ^= 0x55
            _ = Story.timeline([bytes])
        }
        #expect(Self.problems([[]]) == ["1 is not a recording of greenroomd"])
        #expect(
            Self.problems([Array("hello".utf8) + [UInt8](repeating: 0, count: 500)]) == [
                "1 is not a recording of greenroomd"
            ])
    }

    @Test("a file of another version, or of another format, is not played")
    func versions() {
        var story = Story()
        var other = story.recorder
        #expect(
            Self.problems([other.file(version: "9.0\u{1b}")]) == [
                "1: greenroomd 9.0? recorded it, and greenroomctl 1.2.3 cannot play its events; use greenroomctl 9.0?"
            ])
        var file = story.recorder.file()
        file[8] = 7
        #expect(Self.problems([file]) == ["1: file format 7, expected 2"])
    }

    @Test("a clock that is set between two files is reported")
    func clocks() {
        var story = Story()
        let first = story.recorder.file(clock: 1_000_000_000)
        story.runOutOfMemory()
        let second = story.recorder.file(clock: 4_600_000_000)
        let problems = Self.problems([first, second])
        #expect(
            problems == [
                "2: the system clock was set or the machine slept meanwhile: times for people differ by up to 1h"
            ])
        let timeline = Story.timeline([first, second])
        for lane in timeline.lanes {
            for bar in lane.states { #expect(bar.start <= bar.end) }
        }
    }

    @Test("a daemon that was started anew begins a new span")
    func restarted() {
        var story = Story()
        let first = story.recorder.file()
        var second = Story(start: .seconds(1000))
        let timeline = Story.timeline([first, second.recorder.file()])
        #expect(timeline.problems.isEmpty)
        #expect(timeline.lanes.first { $0.app == "web" }?.states.filter { $0.label == "launching" }.count == 2)
    }
}
