import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

/// What processes have used of GPUs (L43), from a made-up /proc.
@Suite("Use of GPUs")
struct GPUUseTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// Writes a descriptor of a process.
    private func hold(_ pid: Int32, _ number: Int, _ target: String, _ info: String) throws {
        let folder = "\(scratch.path)/\(pid)"
        for name in ["fd", "fdinfo"] { try createDirectories(at: "\(folder)/\(name)") }
        _ = try? removeFile(at: "\(folder)/fd/\(number)")
        #expect(symlink(target, "\(folder)/fd/\(number)") == 0)
        try replaceFile(at: "\(folder)/fdinfo/\(number)", with: Array(info.utf8))
    }

    private func use(_ pids: Int32...) throws -> GPUUse {
        let search = GPUSearch(ProcFS(root: scratch.path), pids)
        while try search.advance() {}
        return search.use
    }

    /// As i915 writes it.
    private func info(client: Int, render: Int, video: Int = 0) -> String {
        "pos:\t0\nflags:\t02100002\ndrm-driver:\ti915\ndrm-client-id:\t\(client)\ndrm-pdev:\t0000:00:02.0\n"
            + "drm-total-system0:\t4096 KiB\ndrm-engine-render:\t\(render) ns\ndrm-engine-capacity-video:\t2\n"
            + "drm-engine-video:\t\(video) ns\n"
    }

    @Test("the time of all engines counts, of a client that several descriptors share only once (L43)")
    func engines() throws {
        try hold(7, 4, "/dev/dri/renderD128", info(client: 1, render: 1_000_000))
        try hold(8, 9, "/dev/dri/renderD128", info(client: 1, render: 1_000_000))
        let before = try use(7, 8)
        #expect(before.growth(since: before) == nil)
        try hold(7, 4, "/dev/dri/renderD128", info(client: 1, render: 3_000_000, video: 500_000))
        try hold(8, 9, "/dev/dri/renderD128", info(client: 1, render: 3_000_000, video: 500_000))
        #expect(try use(7, 8).growth(since: before) == .microseconds(2500))
    }

    @Test("all of a new client counts, nothing of one that has left, and nothing of other files (L43)")
    func clients() throws {
        try hold(7, 4, "/dev/dri/card0", info(client: 1, render: 5_000_000))
        let before = try use(7)
        try hold(7, 4, "/dev/dri/card0", info(client: 2, render: 3_000_000))
        #expect(try use(7).growth(since: before) == .milliseconds(3))
        try hold(7, 4, "/home/dri/card0", info(client: 2, render: 3_000_000))
        #expect(try use(7) == GPUUse())
        #expect(try use(99) == GPUUse())
    }

    @Test("cycles of a driver that counts no time are a use of unknown length (L43)")
    func cycles() throws {
        func cycles(_ count: Int) -> String {
            "drm-driver:\txe\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\ndrm-cycles-rcs:\t\(count)\n"
                + "drm-total-cycles-rcs:\t\(count * 1000)\n"
        }
        try hold(7, 4, "/dev/dri/renderD129", cycles(10))
        let before = try use(7)
        try hold(7, 4, "/dev/dri/renderD129", cycles(11))
        #expect(try use(7).growth(since: before) == .zero)
        #expect(try before.growth(since: use(7)) == nil)
    }

    @Test("text of another form counts for nothing (L43)")
    func damaged() throws {
        try hold(
            7, 4, "/dev/dri/card0",
            "drm-engine-render\ndrm-engine-render:\ndrm-engine-render:\t-5 ns\ndrm-engine-render:\t99999999999999999999 ns\n\u{0}\n"
        )
        #expect(try use(7) == GPUUse())
    }
}
