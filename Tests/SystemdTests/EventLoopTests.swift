import Glibc
import LoopPolicy
import Posix
import Systemd
import TestKit
import Testing

@Suite("Event loop")
struct EventLoopTests {
    @Test("the handler of a readable descriptor is called with its events")
    func readable() throws {
        let loop = try EventLoop()
        let pipe = try TestPipe()
        var seen: [EpollEvents] = []
        let source = try loop.addDescriptor(pipe.reading, events: .readable) { seen.append($0) }
        #expect(try !loop.runOnce(timeout: .zero))
        pipe.write("x")
        #expect(try loop.runOnce(timeout: testTimeout))
        #expect(seen == [.readable])
        _ = pipe.read()
        pipe.closeWriting()
        #expect(try loop.runOnce(timeout: testTimeout))
        #expect(seen.last == .hangUp)
        source.cancel()
        #expect(try !loop.runOnce(timeout: .zero))
    }

    @Test("a disabled source is not served until it is enabled, and an edge is reported once")
    func disabledAndEdge() throws {
        let loop = try EventLoop()
        let pipe = try TestPipe()
        var count = 0
        let source = try loop.addDescriptor(pipe.reading, events: [.readable, .edge]) { _ in count += 1 }
        source.isEnabled = false
        pipe.write("x")
        #expect(try !loop.runOnce(timeout: .zero))
        source.isEnabled = true
        #expect(try loop.runOnce(timeout: testTimeout))
        #expect(try !loop.runOnce(timeout: .zero))
        #expect(count == 1)
        try source.setEvents(.readable)
        #expect(try loop.runOnce(timeout: testTimeout))
        #expect(count == 2)
    }

    @Test("a source may be dropped in its own handler, and releases its closure")
    func dropInside() throws {
        final class Owner {
            var source: EventSource?
            var calls = 0
        }
        let loop = try EventLoop()
        let pipe = try TestPipe()
        pipe.write("x")
        var owner: Owner? = Owner()
        weak let closure = owner
        owner?.source = try loop.addDescriptor(pipe.reading, events: .readable) { [owner] _ in
            owner?.calls += 1
            owner?.source = nil
        }
        #expect(try loop.runOnce(timeout: testTimeout))
        #expect(try !loop.runOnce(timeout: .zero))
        #expect(owner?.calls == 1)
        owner = nil
        #expect(closure == nil)
    }

    @Test("a dropped source is not served")
    func dropSilently() throws {
        let loop = try EventLoop()
        let pipe = try TestPipe()
        var called = false
        _ = try loop.addDescriptor(pipe.reading, events: .readable) { _ in called = true }
        pipe.write("x")
        #expect(try !loop.runOnce(timeout: .zero))
        #expect(!called)
    }

    @Test("of two pending sources the one with the higher priority is served first")
    func priorities() throws {
        let loop = try EventLoop()
        let (first, second) = (try TestPipe(), try TestPipe())
        var order: [String] = []
        let late = try loop.addDescriptor(first.reading, events: .readable, level: .work) { _ in
            order.append("peer")
            _ = first.read()
        }
        let early = try loop.addDescriptor(second.reading, events: .readable, level: .urgent) { _ in
            order.append("important")
            _ = second.read()
        }
        first.write("x")
        second.write("x")
        #expect(try loop.serve { order.count == 2 })
        #expect(order == ["important", "peer"])
        withExtendedLifetime((late, early)) {}
    }

    @Test("a descriptor that cannot be watched throws its errno")
    func regularFile() throws {
        let loop = try EventLoop()
        let file = SharedDescriptor(try Descriptor.open("/proc/self/exe", O_RDONLY))
        #expect(throws: SystemError(call: "sd_event_add_io", errno: EPERM)) {
            _ = try loop.addDescriptor(file, events: .readable) { _ in }
        }
    }

    @Test("work of `callLater` runs after the handler, in order, and may call `callLater` again")
    func callLater() throws {
        let loop = try EventLoop()
        var order: [Int] = []
        loop.callLater {
            order.append(1)
            loop.callLater { order.append(3) }
        }
        loop.callLater { order.append(2) }
        #expect(order.isEmpty)
        #expect(try loop.serve { order.count == 3 })
        #expect(order == [1, 2, 3])
        #expect(try !loop.runOnce(timeout: .zero))
    }

    @Test("run returns the code that exit was given")
    func exitCode() throws {
        let loop = try EventLoop()
        loop.callLater { loop.exit(7) }
        #expect(try loop.run() == 7)
        #expect(try !loop.runOnce(timeout: .zero))
    }

    @Test("without a service manager that requires it there is no watchdog")
    func watchdog() throws {
        #expect(try ServiceManager.watchdogLimit() == nil)
    }

    @Test("a signal is blocked and delivered by the loop, with its sender")
    func signal() throws {
        let loop = try EventLoop()
        var seen: [SignalInfo] = []
        let source = try loop.addSignal(SIGUSR2, kind: .childSignal) { seen.append($0) }
        // To this thread alone: others of the test process have not blocked it.
        #expect(pthread_kill(pthread_self(), SIGUSR2) == 0)
        #expect(try loop.runOnce(timeout: testTimeout))
        #expect(seen.map(\.signal) == [SIGUSR2])
        #expect(seen.map(\.pid) == [getpid()])
        #expect(seen.map(\.uid) == [getuid()])
        source.cancel()
    }

    @Test("a number that is no signal is refused")
    func noSignal() throws {
        let loop = try EventLoop()
        #expect(throws: SystemError(call: "sigaddset 0", errno: EINVAL)) {
            _ = try loop.addSignal(0, kind: .childSignal) { _ in }
        }
    }
}

@Suite("Timer")
struct TimerTests {
    @Test("a new timer is not armed")
    func unarmed() throws {
        let loop = try EventLoop()
        let timer = try loop.makeTimer { _ in Issue.record("it fired") }
        #expect(!timer.isArmed)
        #expect(try !loop.runOnce(timeout: .zero))
    }

    @Test("a timer fires once, with its own time, and not before it")
    func once() throws {
        let loop = try EventLoop()
        var fired: [(asked: Duration, now: Duration)] = []
        let timer = try loop.makeTimer { fired.append(($0, loop.now())) }
        let time = loop.now() + .milliseconds(3) + .nanoseconds(1)
        timer.arm(at: time)
        #expect(timer.isArmed)
        #expect(try loop.serve { !fired.isEmpty })
        #expect(try !loop.runOnce(timeout: .zero))
        #expect(fired.count == 1)
        #expect(fired[0].asked >= time && fired[0].asked < time + .microseconds(1))
        #expect(fired[0].now >= time)
        #expect(!timer.isArmed)
    }

    @Test(
        "a timer in the past fires at once; one in the distant future, or without a time, never fires",
        arguments: [-1, 0, 1])
    func extremes(seconds: Int) throws {
        let loop = try EventLoop()
        var fired = 0
        let timer = try loop.makeTimer { _ in fired += 1 }
        timer.arm(at: .seconds(seconds))
        #expect(try loop.runOnce(timeout: testTimeout))
        #expect(fired == 1)
        timer.arm(at: .seconds(Int64.max))
        #expect(try !loop.runOnce(timeout: .zero))
        timer.arm(at: .seconds(seconds))
        timer.arm(at: nil)
        #expect(try !loop.runOnce(timeout: .zero))
        #expect(fired == 1)
    }

    @Test("a timer may arm itself again in its handler, and may be cancelled there")
    func again() throws {
        final class Owner { var timer: Timer? }
        let loop = try EventLoop()
        let owner = Owner()
        var fired = 0
        owner.timer = try loop.makeTimer { [weak owner] _ in
            fired += 1
            if fired < 3 { owner?.timer?.arm(at: loop.now()) } else { owner?.timer = nil }
        }
        owner.timer?.arm(at: .zero)
        #expect(try loop.serve { owner.timer == nil })
        #expect(fired == 3)
    }

    @Test("a cancelled timer does not fire even if it is armed")
    func cancelled() throws {
        let loop = try EventLoop()
        let timer = try loop.makeTimer { _ in Issue.record("it fired") }
        timer.cancel()
        timer.arm(at: .zero)
        #expect(try !loop.runOnce(timeout: .zero))
    }
}
