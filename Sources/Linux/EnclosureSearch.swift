package import Posix

/// The enclosures of previous instances of the daemon, listed once. In process-group mode the list is made in steps.
package final class EnclosureSearch {
    package struct Found {
        package let app: String
        package let run: UInt64
        /// The name of the cgroup, or the value of the marker.
        let location: String
    }

    /// All that were found, in the order of their locations.
    package private(set) var all: [Found]
    private var byRun: [UInt64: [Found]] = [:]
    /// In process-group mode: the search of /proc.
    let scan: ProcessScan?
    private let name: String

    init(groups: [Found]) {
        all = groups
        scan = nil
        name = ""
        byRun = Dictionary(grouping: groups, by: \.run)
    }

    init(scan: ProcessScan, name: String) {
        all = []
        self.scan = scan
        self.name = name
    }

    /// Searches on.
    /// - Returns: whether there is more to search.
    package func advance() throws(SystemError) -> Bool {
        guard let scan else { return false }
        if try scan.advance() { return true }
        all = scan.markers.compactMap { value in
            RunMarker(value, of: name).map { Found(app: $0.app, run: $0.run, location: value) }
        }
        byRun = Dictionary(grouping: all, by: \.run)
        return false
    }

    func found(_ run: UInt64) -> [Found] { byRun[run] ?? [] }
}
