import Control

/// The arguments, which greenroomctl has checked: this program is not called by users.
package struct Options: Equatable, Sendable {
    /// The runtime folder of the daemon.
    package var runtime = ""
    /// The path of greenroomctl, whose output the pages show.
    package var control = ""
    package var interval = Duration.seconds(2)
    package var sort: SortKey?
    /// How many tables are printed instead of a screen.
    package var batch: Int?

    /// - Returns: `nil` if the arguments are not those of greenroomctl.
    package init?(_ arguments: [String]) {
        var rest = arguments[...]
        while let word = rest.popFirst() {
            guard let value = rest.popFirst() else { return nil }
            switch word {
            case "--runtime": runtime = value
            case "--control": control = value
            case "--interval":
                guard let milliseconds = UInt32(value) else { return nil }
                interval = .milliseconds(Int64(milliseconds))
            case "--sort":
                guard let key = SortKey(rawValue: value) else { return nil }
                sort = key
            case "--batch":
                guard let count = Int(value), count > 0 else { return nil }
                batch = count
            default: return nil
            }
        }
        guard !runtime.isEmpty, !control.isEmpty else { return nil }
    }
}
