import CLinux
import Posix

/// What an app has left in its own pipes when it was frozen.
package struct LeftInput: Hashable, Sendable {
    /// Numbers of bytes by the inode of the pipe.
    var bytes: [UInt64: UInt64] = [:]
    /// Event descriptors that were readable (eventfd(2)).
    var events: Set<EventDescriptor> = []
    /// The inodes of pipes and sockets whose end had arrived (`DescriptorWatch.wakesOnEnds`).
    var ends: Set<UInt64> = []

    package init() {}

    package var isEmpty: Bool { bytes.isEmpty && events.isEmpty && ends.isEmpty }
}

/// An event descriptor of a process. The kernel does not tell whether two of them are of the same file.
struct EventDescriptor: Hashable {
    let pid: Int32
    let number: Int32
}

/// A pipe of which one process of the app has both ends may be a lock or a semaphore: libuv keeps a byte in such a pipe for as
/// long as the program runs (uv__signal_lock), the jobserver of make its tokens. What was in it at the freeze before, and is
/// there still, is no input: the app has run since and has not read it. So it wakes the app once in a run.
///
/// Of other pipes nothing is assumed. A client could have sent the same number of bytes again between the last measurement and
/// the freeze.
///
/// The same holds for event descriptors that were readable at the freeze before: a program signals its own threads with them, and libzmq
/// leaves some readable. What is added to one while the app is frozen is input.
extension DescriptorWatch {
    private struct End: Hashable {
        let table: Int
        let inode: UInt64

        init(_ item: ListedDescriptor) {
            table = item.table
            inode = item.inode
        }
    }

    /// The inodes of the pipes of which one process has both ends. A FIFO is none: any program can open it.
    static func ownPipes(in listed: [ListedDescriptor]) -> Set<UInt64> {
        let pipes = listed.filter { $0.kind == .pipe && $0.device == 0 }
        let written = Set(pipes.filter(\.canWrite).map { End($0) })
        return Set(pipes.filter { $0.canRead && written.contains(End($0)) }.map(\.inode))
    }

    /// Takes what is known about an own pipe from the watch before. If it is empty now, whatever comes is input.
    func recall(_ duplicate: inout WatchedDescriptor) {
        duplicate.isOwnPipe = true
        let now = EpollEvents(rawValue: clinux_poll_now(duplicate.number, EpollEvents.readable.rawValue))
        guard now.contains(.readable), let bytes = leftBefore.bytes[duplicate.inode] else { return }
        duplicate.lastBytes = bytes
        // Until the helper thread has counted them.
        recordLeft(bytes, in: duplicate)
    }

    /// Takes what is known about an event descriptor from the watch before.
    func recallEvent(_ duplicate: inout WatchedDescriptor) {
        guard clinux_poll_now(duplicate.number, EpollEvents.readable.rawValue) != 0 else { return }
        let event = EventDescriptor(pid: processes[duplicate.first.process].pid, number: duplicate.first.number)
        duplicate.wasLeft = leftBefore.events.contains(event)
        recordLeft(event)
    }
}
