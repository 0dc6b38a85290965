import Glibc
import Posix
import Systemd
import TestKit
import Testing

@Suite("Log")
struct JournalTests {
    /// The output on standard error in this style.
    private func written(_ style: Journal.ErrorStyle, _ log: (Journal) -> Void) throws -> String {
        let pipe = try TestPipe()
        log(Journal(level: .info, usesJournald: false, errorStyle: style, errorDescriptor: pipe.writing))
        pipe.closeWriting()
        return String(decoding: pipe.read(), as: UTF8.self)
    }

    @Test("a line for the journal begins with its level")
    func prefixed() throws {
        let text = try written(.prefixed) {
            $0.log(.warning, "Memory is short.", fields: [("MESSAGE_ID", "x")])
            $0.log(.info, "mail is active")
        }
        #expect(text == "<4>Memory is short.\n<6>mail is active\n")
    }

    @Test("in a file a line begins with the time and the level's name")
    func plain() throws {
        let text = try written(.plain) { $0.log(.error, "It failed.") }
        #expect(text.wholeMatch(of: /\d\d:\d\d:\d\d\.\d\d\d error: It failed\.\n/) != nil, "\(text)")
    }

    @Test("on a terminal lines are columns, in which warnings and errors have a colour, unless colours are disabled")
    func terminal() throws {
        func entries(_ journal: Journal) {
            journal.subjectField = "APP"
            journal.log(.error, "bad")
            journal.log(.info, "web: good", fields: [("APP", "web")])
            journal.log(
                .info, "web: it is active", fields: [("APP", "web")],
                change: Journal.Change(state: "active", sentence: "ready"))
            journal.show("its \u{1b}[2Joutput", of: "a-name-that-is-longer-than-the-column")
        }
        let coloured = try written(.terminal(colour: true), entries).split(separator: "\n")
        #expect(coloured[0].hasSuffix("  \u{1b}[31mbad\u{1b}[0m"))
        #expect(coloured[1].contains(/m +good$/))
        let grey = try written(.terminal(colour: false), entries).split(separator: "\n")
        #expect(grey[0].wholeMatch(of: /[\d:.]{12}  [\w.-]+ +bad/) != nil, "\(grey[0])")
        #expect(grey[1].dropFirst(12) == "  web                        good")
        #expect(grey[3].dropFirst(12) == #"  a-name-that-is-longer-than-the-column  │ its \x1b[2Joutput"#)
        #expect(grey[2].dropFirst(12) == "  web           active       ready")
        // What no terminal shows is not shown elsewhere either.
        #expect(try written(.plain) { $0.show("output", of: "web") }.isEmpty)
    }

    @Test("a terminal that is not read delays nothing; what it took is whole lines")
    func silentTerminal() throws {
        let (number, path) = try openTerminal()
        let master = SharedDescriptor(Descriptor(adopting: number))
        let terminal = SharedDescriptor(try Descriptor.open(path, O_RDWR | O_NOCTTY))
        let journal = Journal(
            level: .info, usesJournald: false, errorStyle: .terminal(colour: false), errorDescriptor: terminal)
        // More than a terminal holds.
        for number in 0..<10_000 { journal.log(.info, "line \(number) \(String(repeating: "x", count: 40))") }
        // Others that have it wait as before.
        #expect(fcntl(terminal.raw, F_GETFL) & O_NONBLOCK == 0)
        var shown = ""
        func readAll() {
            var buffer = [UInt8](repeating: 0, count: 4096)
            while isReadable(master.raw, within: .milliseconds(100)) {
                let count = read(master.raw, &buffer, buffer.count)
                shown += String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
            }
        }
        readAll()
        journal.log(.info, "the last")
        readAll()
        let lines = shown.split(separator: "\r\n")
        #expect(lines.count > 10 && lines.last?.hasSuffix("the last") == true, "\(lines.suffix(3))")
        #expect(lines.dropLast().allSatisfy { $0.hasSuffix("xxxx") && $0.contains("  line ") })
        withExtendedLifetime(master) {}
    }

    @Test("entries below the level are dropped")
    func level() throws {
        let text = try written(.prefixed) {
            $0.log(.debug, "dropped")
            $0.level = .debug
            $0.log(.debug, "kept")
            $0.level = .error
            $0.log(.warning, "dropped")
        }
        #expect(text == "<7>kept\n")
    }

    @Test("one entry is one line, with control characters escaped, and bounded")
    func hostile() throws {
        let text = try written(.prefixed) {
            $0.log(.info, "a\n<0>b\u{1b}[2J\u{9b}c\0d")
            $0.log(.info, String(repeating: "ä", count: 100_000))
        }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 3)
        #expect(lines[0] == #"<6>a\n<0>b\x1b[2J\x9bc\x00d"#)
        #expect(lines[1].utf8.count <= 4096)
    }

    @Test("no line of standard error contains a line separator or a character that changes the direction of text")
    func directions() throws {
        let values = [0x61c, 0x85, 0x200e, 0x200f] + Array(0x2028...0x202e) + Array(0x2066...0x2069)
        let scalars = values.compactMap { Unicode.Scalar(UInt32($0)) }
        let text = try written(.prefixed) { journal in
            for scalar in scalars { journal.log(.info, "a\(Character(scalar))b") }
            journal.log(.info, "\u{0645}\u{200c}\u{062e}")
        }
        let spelled = values.map { value -> String in
            let digits = String(value, radix: 16)
            return value < 0x100 ? "x" + digits : "u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
        #expect(text == spelled.map { "<6>a\\\($0)b\n" }.joined() + "<6>\u{0645}\u{200c}\u{062e}\n")
    }

    @Test("a reader of standard error that does not read does not block the program")
    func fullPipe() throws {
        let pipe = try TestPipe()
        let journal = Journal(level: .info, usesJournald: false, errorStyle: .plain, errorDescriptor: pipe.writing)
        for _ in 0..<2000 { journal.log(.info, String(repeating: "x", count: 100)) }
        #expect(!pipe.read().isEmpty)
    }

    @Test("the style depends on the kind of standard error")
    func style() throws {
        let pipe = try TestPipe()
        #expect(Journal.styleOfStandardError(pipe.writing) == .plain)
        let terminal = SharedDescriptor(try Descriptor.open("/dev/ptmx", O_RDWR | O_NOCTTY))
        guard case .terminal = Journal.styleOfStandardError(terminal) else {
            Issue.record("a terminal was not recognised")
            return
        }
    }

    @Test("a stream that the journal reads is recognised by its inode")
    func journalStream() throws {
        try inOwnProcess {
            let pipe = try TestPipe()
            var status = stat()
            #expect(fstat(pipe.writing.raw, &status) == 0)
            setenv("JOURNAL_STREAM", "\(status.st_dev):\(status.st_ino)", 1)
            #expect(Journal.styleOfStandardError(pipe.writing) == .prefixed)
            setenv("JOURNAL_STREAM", "\(status.st_dev):\(status.st_ino + 1)", 1)
            #expect(Journal.styleOfStandardError(pipe.writing) == .plain)
        }
    }

    @Test("without journald, an entry is dropped without an error")
    func noJournald() throws {
        let journal = Journal(level: .info, usesJournald: true, errorStyle: nil)
        journal.log(
            .debug, "A test wrote this.", fields: [("bad name", "x"), ("GREENROOM_TEST", "1"), ("_HIDDEN", "x")])
        #expect(journal.usesJournald)
    }

    /// A journald that reads entries on request.
    private final class FakeJournald {
        private let folder: String?
        let path: String
        private var descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)

        init(at socketPath: String? = nil) throws {
            folder = socketPath == nil ? makeTemporaryFolder("journald") : nil
            path = socketPath ?? (folder ?? "") + "/socket"
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
            let result = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            try #require(result == 0)
        }

        /// Ends journald; its socket stays.
        func end() {
            if descriptor >= 0 { close(descriptor) }
            descriptor = -1
        }

        deinit {
            end()
            if let folder { removeTree(folder) }
        }

        /// Returns the next entry; `nil` if there is none.
        func next() -> String? {
            var bytes = [UInt8](repeating: 0, count: 65_536)
            let count = recv(descriptor, &bytes, bytes.count, 0)
            return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
        }
    }

    @Test("an entry for journald has its fields, each on its line or with its length")
    func native() throws {
        let journald = try FakeJournald()
        let journal = Journal(level: .info, usesJournald: true, errorStyle: nil, journalPath: journald.path)
        let fields = [("GREENROOM_TASK", "two\nlines"), ("GREENROOM_APP", "mail"), ("bad name", "x"), ("_HIDDEN", "x")]
        journal.log(.notice, "one\nline\u{202e}", fields: fields)
        let entry = try #require(journald.next())
        #expect(entry.hasPrefix("MESSAGE=one\\nline\\u202e\nPRIORITY=5\nSYSLOG_IDENTIFIER="))
        #expect(entry.contains("\nGREENROOM_TASK\n\u{9}\0\0\0\0\0\0\0two\nlines\n"))
        #expect(entry.contains("\nCODE_FILE=SystemdTests/JournalTests.swift\n"))
        #expect(entry.hasSuffix("\nGREENROOM_APP=mail\n"))
    }

    @Test("a journald that does not read does not block the program, and later receives the number of lost entries")
    func stoppedJournald() throws {
        let journald = try FakeJournald()
        let journal = Journal(level: .info, usesJournald: true, errorStyle: nil, journalPath: journald.path)
        for _ in 0..<5000 { journal.log(.info, "lost") }
        var delivered = 0
        while journald.next() != nil { delivered += 1 }
        #expect(delivered > 0 && delivered < 5000)
        journal.log(.info, "delivered")
        let entry = try #require(journald.next())
        #expect(entry.contains("\nGREENROOM_LOST_ENTRIES=\(5000 - delivered)\n"))
    }

    @Test("if journald ends, entries go to standard error, and the next journald receives their number")
    func goneJournald() throws {
        let pipe = try TestPipe()
        let folder = makeTemporaryFolder("journald")
        defer { removeTree(folder) }
        let path = folder + "/socket"
        let journal = Journal(
            level: .info, usesJournald: true, errorStyle: nil, errorDescriptor: pipe.writing, journalPath: path)
        let bound = try FakeJournald(at: path)
        journal.log(.info, "delivered")
        #expect(bound.next()?.hasPrefix("MESSAGE=delivered\n") == true)
        // First its socket remains, then it is removed.
        bound.end()
        journal.log(.info, "refused")
        unlink(path)
        journal.log(.info, "missing")
        let next = try FakeJournald(at: path)
        journal.log(.info, "again")
        #expect(next.next()?.contains("\nGREENROOM_LOST_ENTRIES=2\n") == true)
        pipe.closeWriting()
        let lines = String(decoding: pipe.read(), as: UTF8.self).split(separator: "\n")
        #expect(lines.map { $0.hasSuffix(": refused") } == [true, false] && lines.last?.hasSuffix(": missing") == true)
    }

    @Test("levels have systemd's names and numbers")
    func names() {
        #expect(LogLevel(name: "warning") == .warning)
        #expect(LogLevel(name: "7") == .debug)
        #expect(LogLevel(name: "err") == .error)
        #expect(LogLevel(name: "8") == nil)
        #expect(LogLevel(name: "loud") == nil)
    }
}
