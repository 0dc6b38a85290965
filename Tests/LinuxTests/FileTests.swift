import Glibc
import Linux
import Posix
import TestKit
import Testing

@Suite("Files")
struct FileTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    func thrown(_ body: () throws(SystemError) -> Void) -> SystemError? {
        do {
            try body()
            return nil
        } catch {
            return error
        }
    }

    @Test("an error is one sentence with the call, the path and the reason")
    func sentence() {
        let error = thrown { () throws(SystemError) in _ = try readFile(at: "/no/such/file", limit: 10) }
        #expect(error?.description == "open /no/such/file: No such file or directory (ENOENT)")
        #expect(SystemError(call: "x", errno: 9999).description == "x: unknown error (errno 9999)")
        #expect(SystemError(call: "x", errno: EIO, path: "a\n\u{1b}[b").description.contains("a\u{FFFD}\u{FFFD}[b"))
    }

    @Test("the files in another user's folder are removed, no link is followed, and folders stay")
    func emptied() throws {
        let folder = scratch.path + "/inbox"
        try createDirectories(at: folder + "/own")
        try replaceFile(at: scratch.path + "/outside", with: [1])
        try replaceFile(at: folder + "/own/kept", with: [1])
        for name in ["a", "b", "c"] { try replaceFile(at: folder + "/" + name, with: [1]) }
        symlink(scratch.path + "/outside", folder + "/link")
        try removeFiles(in: folder)
        #expect(try folderEntries(at: folder) == ["own"])
        #expect(exists(at: folder + "/own/kept") && exists(at: scratch.path + "/outside"))
        symlink(folder + "/own", scratch.path + "/elsewhere")
        #expect(thrown { () throws(SystemError) in try removeFiles(in: scratch.path + "/elsewhere") } != nil)
        #expect(exists(at: folder + "/own/kept"))
        #expect(thrown { () throws(SystemError) in try removeFiles(in: scratch.path + "/none") } == nil)
        for name in ["a", "b", "c"] { try replaceFile(at: folder + "/own/" + name, with: [1]) }
        try removeFiles(in: folder + "/own", limit: 3)
        #expect(try !folderEntries(at: folder + "/own").isEmpty)
    }

    @Test("a folder with very many files and folders is removed in steps, and no link is followed")
    func removedInSteps() throws {
        let parent = scratch.path + "/inbox"
        try createDirectories(at: parent + "/photos/deep/deeper")
        try createDirectories(at: parent + "/mail")
        try replaceFile(at: scratch.path + "/outside", with: [1])
        symlink(scratch.path, parent + "/photos/link")
        symlink(scratch.path, parent + "/photos/deep/link")
        for number in 0..<50 {
            try replaceFile(at: parent + "/photos/\(number)", with: [])
            try replaceFile(at: parent + "/photos/deep/deeper/\(number)", with: [])
            try createDirectories(at: parent + "/photos/folder\(number)")
        }
        var removal = FolderRemoval(in: parent)
        #expect(removal.isEmpty)
        try removal.add("photos")
        #expect(!exists(at: parent + "/photos"))
        var steps = 0
        while !removal.isEmpty, steps < 1000 {
            // The next daemon continues.
            if steps == 5 { removal = FolderRemoval(in: parent) }
            try removal.step(limit: 10)
            steps += 1
        }
        // 154 entries and 53 folders, at most 10 in a step.
        #expect((15..<1000).contains(steps))
        #expect(try folderEntries(at: parent) == ["mail"])
        #expect(exists(at: scratch.path + "/outside"))
    }

    @Test("a file is read up to its limit; one more byte is refused")
    func limits() throws {
        for size in [0, 1, 4096, 100_000] {
            let path = try scratch.file("f", String(repeating: "x", count: size))
            #expect(try readFile(at: path, limit: size).count == size)
            if size > 0 {
                #expect(
                    thrown { () throws(SystemError) in _ = try readFile(at: path, limit: size - 1) }?.errno == EFBIG)
            }
        }
    }

    @Test("a FIFO, a folder, and a link that is not followed are refused without blocking")
    func irregular() throws {
        let fifo = scratch.path + "/fifo"
        mkfifo(fifo, 0o600)
        #expect(thrown { () throws(SystemError) in _ = try readFile(at: fifo, limit: 10) }?.errno == EINVAL)
        #expect(thrown { () throws(SystemError) in _ = try readFile(at: scratch.path, limit: 10) }?.errno == EISDIR)
        let target = try scratch.file("target")
        symlink(target, scratch.path + "/link")
        #expect(try readFile(at: scratch.path + "/link", limit: 10) == [])
        let refused = thrown { () throws(SystemError) in
            _ = try readFile(at: scratch.path + "/link", limit: 10, following: false)
        }
        #expect(refused?.errno == ELOOP)
        #expect(thrown { () throws(SystemError) in _ = try readFile(at: "/etc/passwd\0x", limit: 10) }?.errno == EINVAL)
        #expect(try readFileIfPresent(at: scratch.path + "/none", limit: 10) == nil)
        #expect(try readFileIfPresent(at: target + "/below", limit: 10) == nil)
    }

    @Test(
        "a file is replaced atomically, and no other file is left",
        arguments: [false, true])
    func replace(durable: Bool) throws {
        let path = try scratch.file("f", "old", mode: 0o600)
        let old = try Descriptor.open(path, O_RDONLY)
        try replaceFile(at: path, with: Array("new".utf8), mode: 0o640, durable: durable)
        #expect(try readFile(at: path, limit: 10) == Array("new".utf8))
        #expect(try readFile(at: "/proc/self/fd/\(old.raw)", limit: 10) == Array("old".utf8))
        var about = stat()
        stat(path, &about)
        #expect(about.st_mode & 0o777 == 0o640)
        #expect(try folderNames(scratch.path) == ["f"])
        // A failure leaves nothing behind.
        mkdir(scratch.path + "/folder", 0o700)
        let error = thrown { () throws(SystemError) in try replaceFile(at: scratch.path + "/folder", with: [1]) }
        #expect(error?.errno == EISDIR)
        #expect(try folderNames(scratch.path) == ["f", "folder"])
        // A temporary file that a crash left, or a link of that name, is not written to.
        let victim = try scratch.file("victim", "precious")
        symlink(victim, "\(scratch.path)/.f.\(getpid())~")
        try replaceFile(at: path, with: Array("newer".utf8))
        #expect(try readFile(at: victim, limit: 100) == Array("precious".utf8))
    }

    @Test("missing parents are created, and the last folder has its mode and owner")
    func directories() throws {
        let path = scratch.path + "/a/b/../c"
        #expect(thrown { () throws(SystemError) in try createDirectories(at: path) }?.errno == EINVAL)
        let owner = geteuid() == 0 ? Owner(uid: 12, gid: 34) : nil
        for mode in [UInt32(0o750), 0o700] {
            try createDirectories(at: scratch.path + "/x//y/./z/", mode: mode, owner: owner)
            var about = stat()
            stat(scratch.path + "/x/y/z", &about)
            #expect(about.st_mode == S_IFDIR | mode)
            if owner != nil { #expect(about.st_uid == 12 && about.st_gid == 34) }
            stat(scratch.path + "/x/y", &about)
            #expect(about.st_uid == geteuid())
        }
        let file = try scratch.file("file")
        #expect(thrown { () throws(SystemError) in try createDirectories(at: file + "/below") }?.errno == ENOTDIR)
        #expect(thrown { () throws(SystemError) in try createDirectories(at: file) } != nil)
    }

    @Test("a link as the last component is refused, and so is another user's link among the parents")
    func links() throws {
        try createDirectories(at: scratch.path + "/real/inner", mode: 0o755)
        symlink(scratch.path + "/real", scratch.path + "/link")
        #expect(
            thrown { () throws(SystemError) in try createDirectories(at: scratch.path + "/link", mode: 0o777) } != nil)
        try createDirectories(at: scratch.path + "/link/inner/new")
        #expect(access(scratch.path + "/real/inner/new", F_OK) == 0)
        if geteuid() == 0 {
            lchown(scratch.path + "/link", 12, 34)
            let error = thrown { () throws(SystemError) in try createDirectories(at: scratch.path + "/link/inner/evil")
            }
            #expect(error != nil)
            #expect(access(scratch.path + "/real/inner/evil", F_OK) != 0)
        }
    }

    @Test("a link among the parents is not followed if another user could replace it")
    func exchangeableLink() throws {
        try createDirectories(at: scratch.path + "/real/inner")
        try createDirectories(at: scratch.path + "/open", mode: 0o777)
        symlink(scratch.path + "/real", scratch.path + "/open/link")
        let path = scratch.path + "/open/link/inner/new"
        #expect(thrown { () throws(SystemError) in try createDirectories(at: path) } != nil)
        #expect(access(scratch.path + "/real/inner/new", F_OK) != 0)
        // As in /tmp, only the link's owner could replace it.
        chmod(scratch.path + "/open", 0o1777)
        try createDirectories(at: path)
        #expect(access(scratch.path + "/real/inner/new", F_OK) == 0)
    }

    @Test("a file that stays open is read from the start each time")
    func kept() throws {
        let path = try scratch.file("f", "one")
        let kept = try KeptFile(path)
        #expect(try kept.read() == Array("one".utf8))
        let file = try Descriptor.open(path, O_WRONLY)
        #expect(write(file.raw, "two!", 4) == 4)
        #expect(try kept.read() == Array("two!".utf8))
        #expect(try kept.read(limit: 2) == Array("tw".utf8))
    }

    @Test("a released descriptor is not closed, and a duplicate is closed separately")
    func descriptors() throws {
        let path = try scratch.file("f")
        let number = try Descriptor.open(path, O_RDONLY).release()
        #expect(fcntl(number, F_GETFD) == FD_CLOEXEC)
        let first = Descriptor(adopting: number)
        let copy = try first.duplicate()
        #expect(copy.raw != number && copy.raw >= 3)
        #expect(fcntl(copy.raw, F_GETFD) == FD_CLOEXEC)
    }
}

extension SharedDescriptor {
    fileprivate var isMemoryFile: Bool { MemoryFile.isMemoryFile(descriptor) }
    fileprivate var isSealed: Bool { MemoryFile.isSealed(descriptor) }
    fileprivate func size() throws -> Int { try MemoryFile.size(descriptor) }
    fileprivate func contents(limit: Int) throws -> [UInt8]? { try MemoryFile.contents(descriptor, limit: limit) }
}

@Suite("Locks and memfds")
struct LockAndMemoryFileTests {
    @Test("a file for a reader is copied in pieces, unless its contents are sealed (L18)")
    func readOnlyFile() throws {
        let source = SharedDescriptor(try MemoryFile.empty("snapshot"))
        let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0) }
        #expect(write(source.raw, bytes, bytes.count) == bytes.count)
        let file = try #require(try ReadOnlyMemoryFile(source, limit: 1 << 20))
        var pieces = 0
        while try file.advance() { pieces += 1 }
        #expect(pieces == 4)
        let reader = try file.reader()
        let isSealed = MemoryFile.hasSealedContents(reader.descriptor)
        #expect(isSealed)
        #expect(try reader.contents(limit: 1 << 20) == bytes)
        #expect(try ReadOnlyMemoryFile(source, limit: 999_999) == nil)
        // It grows while it is copied.
        let growing = try #require(try ReadOnlyMemoryFile(source, limit: 1_000_000))
        #expect(write(source.raw, bytes, 1) == 1)
        #expect(throws: SystemError(call: "sendfile", errno: EFBIG)) { while try growing.advance() {} }
        let sealed = SharedDescriptor(try MemoryFile.sealed("state", [1, 2]))
        let shared = try #require(try ReadOnlyMemoryFile(sealed, limit: 2))
        #expect(try !shared.advance())
        let own = try shared.reader()
        #expect(try own.contents(limit: 2) == [1, 2])
    }

    @Test("a lock has one holder, whose pid it contains, and is free when the holder releases it")
    func lock() throws {
        let scratch = try Scratch()
        let path = scratch.path + "/lock"
        do {
            let first = try LockFile.acquire(at: path)
            guard case .acquired(let lock) = consume first else {
                Issue.record("the first attempt must succeed")
                return
            }
            #expect(fcntl(lock.descriptor.raw, F_GETFD) == FD_CLOEXEC)
            // A user who may read the file could lock it.
            var about = stat()
            #expect(stat(path, &about) == 0 && about.st_mode & 0o777 == 0o600)
            let second = try LockFile.acquire(at: path)
            switch consume second {
            case .acquired: Issue.record("two holders have the lock")
            case .held(let by): #expect(by == getpid())
            }
            #expect(try readFile(at: path, limit: 100) == Array("\(getpid())\n".utf8))
        }
        let third = try LockFile.acquire(at: path)
        guard case .acquired = consume third else {
            Issue.record("the lock outlived its holder")
            return
        }
    }

    @Test("a lock file with an invalid pid is still locked, and a link is refused")
    func nonsense() throws {
        let scratch = try Scratch()
        let path = try scratch.file("lock", "zzz")
        let other = try Descriptor.open(path, O_RDWR)
        #expect(flock(other.raw, LOCK_EX) == 0)
        let attempt = try LockFile.acquire(at: path)
        switch consume attempt {
        case .acquired: Issue.record("two holders have the lock")
        case .held(let by): #expect(by == nil)
        }
        symlink(path, scratch.path + "/link")
        #expect(throws: SystemError(call: "open", errno: ELOOP, path: scratch.path + "/link")) {
            _ = try LockFile.acquire(at: scratch.path + "/link")
        }
    }

    @Test("the contents of a sealed memfd cannot change")
    func sealed() throws {
        let file = SharedDescriptor(try MemoryFile.sealed("state", Array("hello".utf8)))
        #expect(file.isSealed)
        #expect(try file.size() == 5)
        #expect(write(file.raw, "x", 1) < 0 && errno == EPERM)
        #expect(ftruncate(file.raw, 0) < 0)
        #expect(try file.contents(limit: 5) == Array("hello".utf8))
        #expect(try file.contents(limit: 4) == nil)
        #expect(fcntl(file.raw, F_GETFD) == FD_CLOEXEC)
    }

    @Test("a descriptor of an app is read only if it is a memfd")
    func offered() throws {
        let open = SharedDescriptor(try MemoryFile.empty("x"))
        #expect(!open.isSealed)
        #expect(try open.contents(limit: 10) == [])
        try MemoryFile.seal(open.descriptor)
        #expect(open.isSealed)
        #expect(throws: SystemError.self) { try MemoryFile.seal(open.descriptor) }
        let end = SharedDescriptor(try Pipe().closingWrite())
        #expect(!end.isMemoryFile)
        #expect(try end.contents(limit: 10) == nil)
        let device = SharedDescriptor(try Descriptor.open("/dev/zero", O_RDONLY))
        #expect(try device.contents(limit: 10) == nil)
    }
}

@Suite("Users and groups")
struct UserTests {
    @Test("root is found by name and by number")
    func root() throws {
        let root = try #require(try lookUpUser("root"))
        #expect(root.uid == 0 && root.gid == 0)
        #expect(try lookUpUser("0") == root)
        #expect(try lookUpGroup("root") == 0)
        #expect(try supplementaryGroups(of: "root", gid: 0).contains(0))
    }

    @Test("a missing user is nil; a number needs no entry; -1 is not a user")
    func missing() throws {
        #expect(try lookUpUser("no-such-user-here") == nil)
        #expect(try lookUpGroup("no-such-group-here") == nil)
        #expect(try lookUpUser("") == nil)
        #expect(try lookUpUser("54321")?.uid == 54321)
        #expect(try lookUpUser("54321")?.home == "/")
        #expect(try lookUpGroup("54321") == 54321)
        for none in ["4294967295", "65535", "4294967296", "-1", "+1", " 1"] { #expect(try lookUpUser(none) == nil) }
        #expect(throws: SystemError.self) { _ = try lookUpUser("a\0b") }
    }
}
