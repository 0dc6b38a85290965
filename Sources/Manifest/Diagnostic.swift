/// An error or a warning about one location of a file.
package struct Diagnostic: Hashable, Sendable, CustomStringConvertible {
    package enum Severity: String, Hashable, Sendable { case error, warning }

    package var severity: Severity
    package var file: String
    /// Counted from 1. 0: the diagnostic is about the whole file.
    package var line: Int
    /// In bytes, counted from 1. 0: the diagnostic is about the whole file.
    package var column: Int
    package var message: String

    package init(_ severity: Severity, _ file: String, line: Int, column: Int, _ message: String) {
        self.severity = severity
        self.file = file
        self.line = line
        self.column = column
        self.message = message
    }

    /// The diagnostic as compilers print it: `photos.app:7:19: error: …`.
    package var description: String { "\(position): \(severity.rawValue): \(message)" }

    /// The diagnostic without its severity, for logs that carry the severity as a level: `photos.app:7:19: …`.
    package var sentence: String { "\(position): \(message)" }

    private var position: String { line == 0 ? file : "\(file):\(line):\(column)" }
}

/// A file's path and contents.
package struct SourceFile: Hashable, Sendable {
    package var path: String
    package var bytes: [UInt8]
    /// Whether diagnostics may quote the file: every user can read it, or the reader of the diagnostics can. Otherwise they only
    /// name keys and what is expected, because a value can be a secret, and a link can lead to any file.
    package var mayBeQuoted = true

    /// The largest file that is parsed, in bytes. A manifest has some hundred bytes, so a larger file is a mistake; the
    /// limit bounds the memory that one mistake costs.
    package static let maximumSize = 1 << 20

    package init(path: String, bytes: [UInt8]) {
        self.path = path
        self.bytes = bytes
    }
}

/// Collects the diagnostics of one parse, up to a limit.
///
/// Errors take precedence: when the limit is reached, an error replaces the last warning. Messages over the limit are not
/// computed.
struct DiagnosticList {
    /// The number of diagnostics that are kept; the rest are counted.
    static let maximum = 100
    private(set) var all: [Diagnostic] = []
    private(set) var hasErrors = false
    private var warnings = 0
    private var omitted = 0

    mutating func error(_ location: @autoclosure () -> Location, _ message: @autoclosure () -> String) {
        hasErrors = true
        if all.count == Self.maximum {
            omitted += 1
            guard warnings > 0, let last = all.lastIndex(where: { $0.severity == .warning }) else { return }
            all.remove(at: last)
            warnings -= 1
        }
        all.append(Diagnostic(.error, location(), message()))
    }

    mutating func warn(_ location: @autoclosure () -> Location, _ message: @autoclosure () -> String) {
        guard all.count < Self.maximum else { return omitted += 1 }
        warnings += 1
        all.append(Diagnostic(.warning, location(), message()))
    }

    /// Returns the diagnostics, followed by one that counts those over the limit.
    func finished(_ file: String) -> [Diagnostic] {
        omitted == 0 ? all : all + [Diagnostic(.warning, .whole(file), "\(omitted) more diagnostics are not shown")]
    }
}

/// A position in a file that a diagnostic refers to.
struct Location: Hashable {
    var file: String
    /// Counted from 1. 0: the whole file.
    var line: Int
    /// In bytes, counted from 1. 0: the whole file.
    var column: Int

    static func whole(_ file: String) -> Location { Location(file: file, line: 0, column: 0) }
}

extension Diagnostic {
    init(_ severity: Severity, _ location: Location, _ message: String) {
        self.init(severity, location.file, line: location.line, column: location.column, message)
    }
}
