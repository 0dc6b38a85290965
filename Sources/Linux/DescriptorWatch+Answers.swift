import CLinux
import Glibc
package import Posix

/// FIONREAD, SO_MEMINFO and getpeername(2) take the lock of a TCP socket or of a pipe. A process outside the app that shares it
/// can hold that lock for as long as it likes: write(2) copies from memory that a FUSE server or userfaultfd(2) provides. So a
/// helper thread of the app makes these calls. If it does not answer, the input is not reported; other apps are unaffected.
extension DescriptorWatch {
    /// The data in the set of the descriptor that tells that answers have arrived.
    static let answersData = UInt64.max

    /// - Returns: false if the question cannot be asked now.
    func ask(_ events: EpollEvents, at index: Int) -> Bool {
        guard let helper = answeringThread(), let copy = try? Descriptor.duplicate(of: duplicates[index].number),
            (try? helper.examineInput(copy, token: UInt64(index))) ?? false
        else { return false }
        duplicates[index].question = events
        return true
    }

    /// Whether this event says that answers have arrived, and not that a descriptor is ready.
    package static func isAnswer(_ ready: Epoll.Ready) -> Bool { ready.data == answersData }

    /// What the helper thread has found since the last call.
    package func answers() -> [Look] {
        guard !isClosed, let helper else { return [] }
        return ((try? helper.collect()) ?? []).map { answer($0) }
    }

    private func answer(_ done: HelperThread.Completion) -> Look {
        let index = Int(clamping: done.token)
        // Its process may have ended meanwhile.
        guard duplicates.indices.contains(index), duplicates[index].number >= 0,
            let events = duplicates[index].question
        else { return .nothing }
        duplicates[index].question = nil
        let peer = duplicates[index].domain == AF_UNIX ? unixPeer(of: duplicates[index]) : done.peer
        let found = Found(
            bytes: done.bytes, isHalfFull: done.isHalfFull && (onlyPeers || done.bytes < fullnessMattersBelow),
            isLocal: done.isLocal, peer: peer.printable(upTo: ArrivedInput.maximumPeer))
        if duplicates[index].isOwnPipe { recordLeft(done.bytes, in: duplicates[index]) }
        let look = report(events, found, at: index)
        let isOfInterest = !onlyPeers || done.isLocal
        if !isOfInterest { removeFromSet(index) }
        // Without memory in the kernel for it, what else has arrived there is found after the next thaw.
        if duplicates[index].isAskedAgain, isOfInterest { _ = addToSet(index) }
        duplicates[index].isAskedAgain = false
        return look
    }
}
