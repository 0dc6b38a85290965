/// What is wrong in a file, where, and what was expected.
package struct Diagnostic: Hashable, Sendable, CustomStringConvertible {
    package enum Severity: String, Hashable, Sendable { case error, warning }

    package var severity: Severity
    package var file: String
    /// From 1; 0: the file as a whole.
    package var line: Int
    /// In bytes, from 1.
    package var column: Int
    package var message: String

    package init(_ severity: Severity, _ file: String, line: Int, column: Int, _ message: String) {
        self.severity = severity
        self.file = file
        self.line = line
        self.column = column
        self.message = message
    }

    /// `photos.app:7:19: error: …`
    package var description: String { "\(place): \(severity.rawValue): \(message)" }

    /// For where the severity is said otherwise: `photos.app:7:19: …`
    package var sentence: String { "\(place): \(message)" }

    private var place: String { line == 0 ? file : "\(file):\(line):\(column)" }
}

/// A file that somebody has read.
package struct SourceFile: Hashable, Sendable {
    package var path: String
    package var bytes: [UInt8]

    /// A manifest is some hundred bytes; what is larger than this is none, and reading it would only cost memory.
    package static let maximumSize = 1 << 20

    package init(path: String, bytes: [UInt8]) {
        self.path = path
        self.bytes = bytes
    }
}

/// Collects what is found, up to a bound. Errors come first in importance: a flood of warnings never hides one, and what a
/// finding over the bound would say is not even worked out.
struct Findings {
    /// The first are the ones that help; nobody reads more.
    static let maximum = 100
    private(set) var all: [Diagnostic] = []
    private(set) var hasErrors = false
    /// Keys whose value was refused, somewhere.
    private(set) var refused: Set<String> = []
    private var warnings = 0
    private var left = 0

    mutating func error(_ place: @autoclosure () -> Place, _ message: @autoclosure () -> String) {
        hasErrors = true
        if all.count == Self.maximum {
            left += 1
            // Where the bound is reached the last warning makes room.
            guard warnings > 0, let last = all.lastIndex(where: { $0.severity == .warning }) else { return }
            all.remove(at: last)
            warnings -= 1
        }
        all.append(Diagnostic(.error, place(), message()))
    }

    mutating func warn(_ place: @autoclosure () -> Place, _ message: @autoclosure () -> String) {
        guard all.count < Self.maximum else { return left += 1 }
        warnings += 1
        all.append(Diagnostic(.warning, place(), message()))
    }

    mutating func refuse(_ key: String) { refused.insert(key) }

    /// With a last line that says how many there are beside.
    func finished(_ file: String) -> [Diagnostic] {
        left == 0 ? all : all + [Diagnostic(.warning, .whole(file), "and \(left) more")]
    }
}

/// Where something stands, for what there is to say about it.
struct Place: Hashable {
    var file: String
    /// From 1; 0: the file as a whole.
    var line: Int
    /// In bytes, from 1.
    var column: Int

    static func whole(_ file: String) -> Place { Place(file: file, line: 0, column: 0) }
}

extension Diagnostic {
    init(_ severity: Severity, _ place: Place, _ message: String) {
        self.init(severity, place.file, line: place.line, column: place.column, message)
    }
}
