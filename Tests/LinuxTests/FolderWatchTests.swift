import Glibc
import Linux
import Posix
import TestKit
import Testing

@Suite("Watched folders")
struct FolderWatchTests {
    private func isReadable(_ descriptor: SharedDescriptor) -> Bool {
        var polled = pollfd(fd: descriptor.raw, events: Int16(POLLIN), revents: 0)
        return poll(&polled, 1, 0) > 0
    }

    @Test("a removed file makes the watch readable until the change is read")
    func removal() throws {
        let folder = makeTemporaryFolder("greenroom-watch")
        defer { removeTree(folder) }
        let watch = try FolderWatch(folder)
        close(open(folder + "/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
        #expect(!isReadable(watch.descriptor))
        unlink(folder + "/file")
        #expect(isReadable(watch.descriptor))
        FolderWatch.clear(watch.descriptor)
        #expect(!isReadable(watch.descriptor))
    }

    @Test("a great number of changes is read in several parts, so that they do not keep a turn of the loop")
    func flood() throws {
        let folder = makeTemporaryFolder("greenroom-watch")
        defer { removeTree(folder) }
        let watch = try FolderWatch(folder)
        // The kernel reports a change in 32 bytes or more; a part is at most 16 times 4096 bytes.
        for number in 0..<3000 {
            // Another name each time: the kernel merges equal changes that follow each other.
            let path = folder + "/\(number)"
            close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
            unlink(path)
        }
        FolderWatch.clear(watch.descriptor)
        #expect(isReadable(watch.descriptor))
        FolderWatch.clear(watch.descriptor)
        #expect(!isReadable(watch.descriptor))
    }
}
