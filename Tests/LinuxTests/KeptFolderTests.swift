import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

/// A folder that an app may write to, by a descriptor.
@Suite("Folders that are kept open")
struct KeptFolderTests {
    private let scratch: Scratch
    private let parent: KeptFolder

    init() throws {
        scratch = try Scratch()
        try createDirectories(at: scratch.path + "/target")
        try replaceFile(at: scratch.path + "/target/keep", with: [1])
        try createDirectories(at: scratch.path + "/inboxes")
        parent = try KeptFolder(scratch.path + "/inboxes")
    }

    private var path: String { parent.path + "/mail" }

    private func write(_ name: String, in folder: KeptFolder) throws(SystemError) {
        try parent.replaceFile(
            name, in: folder, with: Array("text".utf8), mode: 0o600, owner: nil, temporary: ".new")
    }

    private func errorCode(_ body: () throws -> Void) -> Int32? {
        do {
            try body()
            return nil
        } catch {
            return (error as? SystemError)?.errno
        }
    }

    @Test("a file appears with its contents, and nothing remains beside it")
    func replace() throws {
        let folder = try parent.makeFolder("mail", mode: 0o700, owner: nil)
        try write("push", in: folder)
        try write("push", in: folder)
        #expect(try readFile(at: path + "/push", limit: 100) == Array("text".utf8))
        #expect(try folder.names(limit: 10) == ["push"])
        #expect(entries(of: parent.path) == ["mail"])
        #expect(folder.contains("push") && !folder.contains("pull"))
        #expect(try folder.remove("push") && !folder.remove("push"))
    }

    @Test("what is put in the position of the folder is not followed", arguments: ["link", "file", "fifo"])
    func replaced(by kind: String) throws {
        let folder = try parent.makeFolder("mail", mode: 0o700, owner: nil)
        #expect(parent.contains(folder, as: "mail"))
        #expect(rmdir(path) == 0)
        switch kind {
        case "link": #expect(symlink(scratch.path + "/target", path) == 0)
        case "file": try replaceFile(at: path, with: [])
        default: #expect(mkfifo(path, 0o600) == 0)
        }
        #expect(!folder.isLinked && !parent.contains(folder, as: "mail"))
        #expect(errorCode { try write("push", in: folder) } == ENOENT)
        let code = try #require(errorCode { _ = try parent.subfolder("mail") })
        #expect([ELOOP, ENOTDIR].contains(code))
        #expect(errorCode { try removeFiles(in: path) } != nil)
        // It is removed, and not what it leads to.
        let next = try parent.makeFolder("mail", mode: 0o700, owner: nil)
        try write("push", in: next)
        #expect(try readFile(at: path + "/push", limit: 100) == Array("text".utf8))
        #expect(try folderEntries(at: scratch.path + "/target") == ["keep"])
    }

    @Test("a folder without permissions is opened by its owner, and a folder under a file's name is reported")
    func permissions() throws {
        let folder = try parent.makeFolder("mail", mode: 0o700, owner: nil)
        try createDirectories(at: path + "/push/deep")
        #expect(errorCode { try write("push", in: folder) } == EISDIR)
        #expect(!exists(at: parent.path + "/.new"))
        chmod(path, 0)
        #expect(try folder.names(limit: 10) == ["push"])
        chmod(path, 0)
        #expect(try parent.subfolder("mail").names(limit: 10) == ["push"])
        // A link in the folder is replaced, and not followed.
        #expect(symlink(scratch.path + "/target/keep", path + "/link") == 0)
        #expect(folder.contains("link"))
        try write("link", in: folder)
        #expect(try readFile(at: scratch.path + "/target/keep", limit: 10) == [1])
    }

    @Test(
        "a file system that is mounted on the folder is neither used nor asked, and root detaches it",
        .enabled(if: mayMount(), "only root can mount a file system"))
    func mounted() throws {
        let folder = try parent.makeFolder("mail", mode: 0o700, owner: nil)
        #expect(mount("test", path, "tmpfs", 0, "size=64k") == 0)
        defer { detach(path) }
        try write("push", in: folder)
        #expect(try folder.names(limit: 10) == ["push"])
        #expect(entries(of: path).isEmpty)
        #expect(errorCode { _ = try parent.subfolder("mail") } == EXDEV)
        #expect(errorCode { _ = try parent.makeFolder("mail", mode: 0o700, owner: nil) } == EXDEV)
        #expect(errorCode { try removeFiles(in: path) } == EXDEV)
        #expect(parent.contains("mail") && !parent.contains(folder, as: "mail"))
        #expect(detachMount(at: path))
        #expect(entries(of: path) == ["push"])
    }

    @Test("a FIFO in the position of a file to which the daemon appends does not block it")
    func fifo() throws {
        let fifo = scratch.path + "/fifo"
        #expect(mkfifo(fifo, 0o600) == 0)
        #expect(errorCode { try AppendFile(fifo).append([1]) } == ENXIO)
        let reader = try Descriptor.open(fifo, O_RDONLY | O_NONBLOCK)
        #expect(errorCode { try AppendFile(fifo).append([1]) } == EINVAL)
        #expect(reader.raw >= 0)
    }

    @Test("a mapped file that is exchanged with another one keeps its contents, and so does one that is made smaller")
    func exchanged() throws {
        let paths = ["a", "b"].map { scratch.path + "/" + $0 }
        let files = try paths.map { try MappedFile(at: $0, creating: 8192) }
        for (number, file) in files.enumerated() { file.store([UInt8(number + 1)], at: 0) }
        try files[1].exchange(with: paths[0])
        #expect(try readFile(at: paths[0], limit: 8192)[0] == 2)
        if exists(at: paths[1]) { #expect(try readFile(at: paths[1], limit: 8192)[0] == 1) }
        try files[1].shrink(to: 4096)
        #expect(files[1].size == 4096 && files[1].bytes(at: 0, count: 1) == [2])
        #expect(try readFile(at: paths[0], limit: 8192).count == 4096)
        try files[1].exchange(with: scratch.path + "/c")
        #expect(exists(at: scratch.path + "/c"))
    }
}
