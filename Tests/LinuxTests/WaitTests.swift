import Glibc
import Idleness
import Posix
import TestKit
import Testing

@testable import Linux

@Suite("In which calls threads wait (L51)")
struct WaitTests {
    private func shown(_ text: String) -> ShownActivity? { ShownActivity(parsing: Array(text.utf8)) }

    private func call(_ arguments: [UInt64]) -> ShownCall { ShownCall(number: 0, arguments: arguments) }

    /// A process whose memory contains at the address 16 these numbers, at 08:20 of each clock.
    private func makeReader(_ numbers: Int64...) -> TimeoutReader {
        let bytes = numbers.flatMap { nativeBytes($0) }
        return TimeoutReader(
            memory: { address, count in address == 16 && bytes.count >= count ? Array(bytes.prefix(count)) : nil },
            clock: { $0 == 1 || $0 == 0 ? .seconds(30_000) : nil })
    }

    @Test("a thread runs, sleeps outside of calls, or waits in one")
    func parse() {
        #expect(shown("running\n") == .running)
        #expect(shown("-1 0x7ffd0 0x7f01\n") == .outside)
        #expect(
            shown("7 0x1 0x2 0x3 0x4 0x5 0xffffffffffffffff 0x7ffd0 0x7f01\n")
                == .call(ShownCall(number: 7, arguments: [1, 2, 3, 4, 5, .max])))
        for text in ["", "\n", "x", "7", "7 0x1 0x2", "7 1 2 3 4 5 6 7 8", "99999999999999999999 0x1", "7 0x1 0xg"] {
            #expect(shown(text) == nil)
        }
    }

    @Test("a timeout is in a register, or in memory")
    func timeouts() {
        let reader = makeReader(20, 500_000)
        func timeout(_ kind: WatchedCall.Timeout, _ arguments: UInt64...) -> WaitTimeout {
            reader.timeout(of: call(arguments), kind)
        }
        #expect(timeout(.milliseconds(2), 0, 0, 1500) == .relative(.milliseconds(1500)))
        #expect(timeout(.milliseconds(2), 0, 0, 0xffff_ffff) == .none)
        #expect(timeout(.timespec(1), 0, 16) == .relative(.seconds(20) + .microseconds(500)))
        #expect(timeout(.timeval(0), 16) == .relative(.seconds(20) + .milliseconds(500)))
        #expect(timeout(.timespec(0), 0) == .none)
        #expect(timeout(.timespec(0), 8) == .unknown)
        #expect(timeout(.timespec(5)) == .none)
        #expect(timeout(.clockNanosleep, 0, 0, 16) == .relative(.seconds(20) + .microseconds(500)))
        #expect(timeout(.futex, 0, 128, 0, 16) == .relative(.seconds(20) + .microseconds(500)))
        #expect(timeout(.futex, 0, 129, 0, 16) == .none)
        #expect(timeout(.none) == .none)
    }

    @Test("of a wait until a time the rest counts")
    func deadlines() {
        func timeout(_ seconds: Int64, _ kind: WatchedCall.Timeout, _ arguments: UInt64...) -> WaitTimeout {
            makeReader(seconds, 0).timeout(of: call(arguments), kind)
        }
        #expect(timeout(30_007, .clockNanosleep, 1, 1, 16) == .remaining(.seconds(7)))
        #expect(timeout(29_000, .clockNanosleep, 1, 1, 16) == .remaining(.zero))
        #expect(timeout(30_007, .clockNanosleep, 3, 1, 16) == .unknown)
        #expect(timeout(30_005, .futex, 0, 137, 0, 16) == .remaining(.seconds(5)))
        #expect(timeout(30_005, .futex, 0, 6, 0, 16) == .remaining(.seconds(5)))
        #expect(timeout(30_005, .realTime(0), 16) == .remaining(.seconds(5)))
        #expect(timeout(30_005, .realTime(0), 0) == .none)
        // Without end, as good as.
        #expect(timeout(.max, .futex, 0, 137, 0, 16) == .none)
        #expect(timeout(-1, .futex, 0, 137, 0, 16) == .unknown)
    }

    #if arch(x86_64)
        @Test("a thread that the freeze stops in a recv(2), read(2) or accept(2) which never waits is at work")
        func nonBlocking() throws {
            let root = makeTemporaryFolder("greenroom-threads")
            defer { removeTree(root) }
            for folder in ["7/task/7", "7/fd", "7/fdinfo"] { try createDirectories(at: "\(root)/\(folder)") }
            for (number, flags) in [(3, "02"), (4, "02004002")] {
                symlink("socket:[\(number)]", "\(root)/7/fd/\(number)")
                try replaceFile(
                    at: "\(root)/7/fdinfo/\(number)", with: Array("pos:\t0\nflags:\t\(flags)\nmnt_id:\t9\n".utf8))
            }
            let reader = ThreadReader(proc: ProcFS(root: root), clocks: SchedulerClocks { _ in .zero }, now: .zero)
            func activity(_ call: Int, _ descriptor: Int, _ third: Int = 0, _ fourth: Int = 0) throws -> ThreadActivity?
            {
                let text = "\(call) 0x\(descriptor) 0x1 0x\(third) 0x\(fourth) 0x0 0x0 0x7ffd0 0x7f01\n"
                try replaceFile(at: "\(root)/7/task/7/syscall", with: Array(text.utf8))
                guard case .found(let sighting) = try reader.look(atThread: 7, of: 7) else { return nil }
                return sighting.activity
            }
            // recvfrom, recvmsg, read, accept4
            for (call, flags) in [(45, [10, 0]), (47, [0, 0]), (0, [10, 0]), (288, [0, 0])] {
                guard case .waiting = try activity(call, 3, flags[0], flags[1]) else {
                    Issue.record("\(call) does not wait")
                    continue
                }
                #expect(try activity(call, 4, flags[0], flags[1]) == .running)
            }
            // MSG_DONTWAIT is 0x40.
            #expect(try activity(45, 3, 10, 40) == .running)
            #expect(try activity(47, 3, 40) == .running)
        }
    #endif

    @Test("a timeout that is none is not known")
    func hostile() {
        for numbers in [[-1, 0], [0, -1], [0, 1_000_000_000]] as [[Int64]] {
            let reader = makeReader(numbers[0], numbers[1])
            #expect(reader.timeout(of: call([16]), .timespec(0)) == .unknown)
        }
        #expect(makeReader(0, 1_000_000).timeout(of: call([16]), .timeval(0)) == .unknown)
        #expect(makeReader(.max, 0).timeout(of: call([16]), .timespec(0)) == .none)
    }

    @Test(
        "the kernel keeps the rest of no call whose timeout is not in memory, and each position is that of an argument")
    func calls() {
        for (number, watched) in WatchedCall.all {
            if watched.keepsRest { #expect(TimeoutReader.rest(of: watched.timeout) != nil, "\(number)") }
            let position =
                switch watched.timeout {
                case .milliseconds(let position), .timespec(let position), .timeval(let position),
                    .realTime(let position):
                    position
                case .none, .clockNanosleep, .futex: 0
                }
            #expect((0..<6).contains(position) && (0..<6).contains(watched.descriptor ?? 0), "\(number)")
        }
    }

    // MARK: When a wait began

    @Test("when a thread ran last is read with nanoseconds")
    func start() {
        func start(_ text: String) -> UInt64? { executionStart(in: Array(text.utf8)) }
        let head = "python3 (9, #threads: 1)\n-------\n"
        let line = "se.exec_start                                :      77213861.240337\n"
        #expect(start(head + line + "se.vruntime : 5.000001\n") == 77_213_861_240_337)
        #expect(start("se.exec_start : 0.000001\n") == 1)
        for text in [
            "", head, "se.exec_start\n", "se.exec_start :\n", "se.exec_start : 5\n", "se.exec_start : 5.1\n",
            "se.exec_start : x.000001\n", "se.exec_start : 9999999999999999.000001\n",
        ] {
            #expect(start(text) == nil, "\(text)")
        }
    }

    @Test("the clock of a processor is read once in 30s, or again after 5s if that failed, and each has its own")
    func clocks() {
        var read: [Int32] = []
        var isBusy = false
        let clocks = SchedulerClocks { processor in
            read.append(processor)
            return processor == 9 || isBusy ? nil : .milliseconds(Int64(processor) * 100 + Int64(read.count))
        }
        #expect(clocks.offset(of: 1, at: .seconds(100)) == .milliseconds(101))
        #expect(clocks.offset(of: 2, at: .seconds(101)) == .milliseconds(202))
        #expect(clocks.offset(of: 1, at: .milliseconds(129_999)) == .milliseconds(101))
        #expect(clocks.offset(of: 1, at: .seconds(130)) == .milliseconds(103))
        #expect(clocks.offset(of: 9, at: .seconds(130)) == nil)
        #expect(clocks.offset(of: 9, at: .seconds(131)) == nil)
        #expect(read == [1, 2, 1, 9])
        #expect(clocks.offset(of: 9, at: .seconds(135)) == nil)
        #expect(read == [1, 2, 1, 9, 9])
        // One that is too busy to be asked has the offset that it had.
        isBusy = true
        #expect(clocks.offset(of: 1, at: .seconds(160)) == .milliseconds(103))
        #expect(clocks.offset(of: 1, at: .milliseconds(164_999)) == .milliseconds(103))
        isBusy = false
        #expect(clocks.offset(of: 1, at: .seconds(165)) == .milliseconds(107))
        #expect(read == [1, 2, 1, 9, 9, 1, 1])
    }

    @Test("the processor on which a thread ran last is read")
    func processor() throws {
        // Fields 4 to 52.
        let line = "9 (a b) S " + (4...52).map(String.init).joined(separator: " ") + "\n"
        #expect(try #require(ProcessStat(parsing: Array(line.utf8))).processor == 39)
        let own = try #require(try ProcFS().stat(of: getpid()))
        #expect((0..<Int32(sysconf(Int32(_SC_NPROCESSORS_CONF)))).contains(own.processor))
    }

    @Test("the rest of a timer descriptor, and its interval, are read; one that is not armed has none")
    func timerDescriptor() throws {
        func timer(_ value: String, _ interval: String) -> TimerDescriptor? {
            let text = """
                pos:\t0
                flags:\t02
                clockid: 1
                ticks: 0
                settime flags: 01
                it_value: \(value)
                it_interval: \(interval)

                """
            return TimerDescriptor(parsing: Array(text.utf8))
        }
        let once = try #require(timer("(49, 406829290)", "(0, 0)"))
        #expect(once.rest == .seconds(49) + .nanoseconds(406_829_290) && once.interval == nil)
        let again = try #require(timer("(0, 5)", "(3, 7)"))
        #expect(again.rest == .nanoseconds(5) && again.interval == .seconds(3) + .nanoseconds(7))
        #expect(timer("(0, 0)", "(3, 0)")?.rest == nil)
        for bad in ["", "(1)", "(1, 2, 3)", "(x, 1)", "(99999999999999, 1)"] { #expect(timer(bad, "(0, 0)") == nil) }
        #expect(TimerDescriptor(parsing: Array("it_value: (1, 1)\n".utf8)) == nil)
    }
}
