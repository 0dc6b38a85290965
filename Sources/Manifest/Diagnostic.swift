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
    package var description: String {
        line == 0
            ? "\(file): \(severity.rawValue): \(message)"
            : "\(file):\(line):\(column): \(severity.rawValue): \(message)"
    }
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

/// Collects what is found, up to a bound: the first are the ones that help.
struct Findings {
    static let maximum = 100
    private(set) var all: [Diagnostic] = []
    private(set) var hasErrors = false
    private var left = 0

    mutating func add(_ diagnostic: Diagnostic) {
        if diagnostic.severity == .error { hasErrors = true }
        if all.count < Self.maximum { all.append(diagnostic) } else { left += 1 }
    }

    /// With a last line that says how many there are beside.
    func finished(_ file: String) -> [Diagnostic] {
        left == 0 ? all : all + [Diagnostic(.warning, file, line: 0, column: 0, "and \(left) more")]
    }
}

/// Where a value stands, for what there is to say about it.
struct Place: Hashable {
    var file: String
    var line: Int
    var column: Int
}
