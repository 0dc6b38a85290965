import Glibc
import Linux
import Posix
import TestKit
import Testing

@Suite("Files that helper threads look at")
struct FileStateReaderTests {
    private func wait(_ descriptor: SharedDescriptor?) throws {
        var polled = pollfd(fd: try #require(descriptor).raw, events: Int16(POLLIN), revents: 0)
        try #require(poll(&polled, 1, 30_000) == 1)
    }

    private func read(_ reader: FileStateReader) throws -> FileStateReader.Outcome {
        try reader.read()
        #expect(reader.isBusy)
        try wait(reader.completions)
        return reader.take()
    }

    /// How many watches an inotify descriptor has.
    private func watches(_ descriptor: SharedDescriptor) throws -> Int {
        let text = try readFile(at: "/proc/self/fdinfo/\(descriptor.raw)", limit: 1 << 16)
        return String(decoding: text, as: UTF8.self).split(separator: "\n").count { $0.hasPrefix("inotify ") }
    }

    @Test("the nearest folder that exists is watched, and no other any more (L33)")
    func nearestFolder() throws {
        let root = makeTemporaryFolder("greenroom-settings")
        defer { removeTree(root) }
        let reader = try #require(try FileStateReader(path: root + "/a/b/file", owner: "web"))
        #expect(try read(reader) == .absent)
        for folder in ["/a", "/a/b"] {
            #expect(mkdir(root + folder, 0o700) == 0)
            try wait(reader.changes)
            FolderWatch.clear(reader.changes)
            #expect(try read(reader) == .absent)
            #expect(try watches(reader.changes) == 1)
        }
        try replaceFile(at: root + "/a/b/file", with: [1, 2, 3])
        try wait(reader.changes)
        guard case .present(let state) = try read(reader) else { throw Problem() }
        #expect(state.size == 3 && state.seconds > 0)
        #expect(rename(root + "/a/b", root + "/c") == 0)
        try wait(reader.changes)
        #expect(try read(reader) == .absent)
        #expect(try watches(reader.changes) == 1)
    }

    private struct Problem: Error {}

    @Test("attributes are read by path, and what is no regular file or does not exist is left out (L33)")
    func attributes() throws {
        let root = makeTemporaryFolder("greenroom-attributes")
        defer { removeTree(root) }
        try replaceFile(at: root + "/short", with: Array("1\n".utf8))
        try replaceFile(at: root + "/long", with: Array(repeating: 7, count: 10_000))
        try replaceFile(at: root + "/empty", with: [])
        #expect(mkfifo(root + "/fifo", 0o600) == 0)
        let reader = try AttributeReader()
        let names = ["long", "none", "fifo", "empty", "short", ""]
        try reader.read(names.map { root + "/" + $0 })
        try reader.read([root + "/short"])
        try wait(reader.completions)
        let contents = try #require(reader.take())
        #expect(Set(contents.keys) == ["/long", "/empty", "/short"].reduce(into: []) { $0.insert(root + $1) })
        #expect(contents[root + "/long"]?.count == 4096)
        #expect(contents[root + "/short"] == Array("1\n".utf8) && contents[root + "/empty"] == [])
        #expect(!reader.isBusy && reader.take() == nil)
        try reader.read([])
        try wait(reader.completions)
        #expect(reader.take() == [:])
    }
}
