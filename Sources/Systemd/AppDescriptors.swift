import LoopPolicy
import Posix

/// The descriptors of apps that are silent most of the time, as one source of the loop: a source of libsystemd for each would take
/// 300 bytes, and an app has two. The kernel reports those that are ready in turns (epoll(7)).
final class AppDescriptors {
    // The loop owns it, and so do the sources that are in the set.
    private unowned let loop: EventLoop
    private let set: Epoll
    private var source: EventSource?

    init(_ loop: EventLoop) throws(SystemError) {
        self.loop = loop
        set = try Epoll()
        source = try loop.addDescriptor(set.descriptor, events: .readable, kind: .appDescriptors) { [unowned self] _ in
            serveNext()
        }
    }

    func add(_ part: PartSource, _ number: Int32, _ events: EpollEvents) throws(SystemError) {
        // Valid while it is reported: `remove` takes it out of the kernel's set before it goes, and one is taken at a time.
        let data = UInt64(UInt(bitPattern: Unmanaged.passUnretained(part).toOpaque()))
        let result = set.add(number, events, data: data)
        if result != 0 { throw SystemError(call: "epoll_ctl", errno: result) }
    }

    func remove(_ number: Int32) { set.remove(number) }

    private func serveNext() -> TurnResult {
        guard let next = (try? set.take(1))?.first, let pointer = UnsafeRawPointer(bitPattern: UInt(next.data)) else {
            return .nothing
        }
        loop.dispatch(Unmanaged<PartSource>.fromOpaque(pointer).takeUnretainedValue(), next.events)
        // Whether anything came of it is counted for the handler.
        return .progress
    }
}
