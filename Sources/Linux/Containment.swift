import CLinux
import Glibc
package import Posix

/// Creates, finds and removes enclosures in one mode.
package final class Containment {
    package let mode: ContainmentMode
    private let proc: ProcFS
    let table: ProcessTable
    private let name: String

    /// - Parameter name: the same as for `ContainmentMode.detect`.
    ///
    /// Makes this process a child subreaper: orphans of apps become its children, which `Reaping.reapOrphans` reaps. So the
    /// end of a main process that is an orphan (`MAINPID=`), and its stops, are reported to this process.
    package init(mode: ContainmentMode, name: String, proc: ProcFS = ProcFS()) throws(SystemError) {
        self.mode = mode
        self.name = name
        self.proc = proc
        table = ProcessTable(proc: proc)
        try check(clinux_set_child_subreaper(true), "prctl PR_SET_CHILD_SUBREAPER")
    }

    /// Creates an enclosure for one run. If a group of the same name still contains processes, another name is used.
    package func create(app: String, run: UInt64) throws(SystemError) -> Enclosure {
        switch mode {
        case .cgroup(let root):
            var name = CgroupLeaf.Name(app: app, run: run)
            while true {
                do {
                    let leaf = try CgroupLeaf.make(name, root: root)
                    return enclosure(app, run, .cgroup(leaf))
                } catch  where error.errno == EEXIST && name.attempt < 100 {
                    name.attempt += 1
                }
            }
        case .processGroup:
            var generator = SystemRandomNumberGenerator()
            let marker = RunMarker.value(name, app, run, random: generator.next())
            return enclosure(app, run, .family(ProcessFamily(markerValue: marker, table: table)))
        }
    }

    /// Begins a search of /proc for the processes of all enclosures; `nil` with cgroups, which do not need it.
    package func makeScan() -> ProcessScan? {
        switch mode {
        case .cgroup: nil
        case .processGroup: ProcessScan(table)
        }
    }

    /// Begins a search for the enclosures of previous instances with the same name. It lists them once, for any number of
    /// `reopen` and `open`.
    package func beginSearch() throws(SystemError) -> EnclosureSearch {
        switch mode {
        case .cgroup(let root): EnclosureSearch(groups: try leaves(of: root))
        case .processGroup: EnclosureSearch(scan: ProcessScan(table), name: name)
        }
    }

    /// Opens the enclosure of a run that the previous instance of the daemon started; `nil` if it no longer exists.
    /// - Parameters:
    ///   - environmentMarker: the run's `Enclosure.environmentMarker` ; `nil`: it is not known. In process-group mode the processes are
    ///     searched for one then.
    ///   - search: a complete search; `nil`: a new one is made.
    package func reopen(
        app: String, run: UInt64, environmentMarker: String? = nil, in search: EnclosureSearch? = nil
    ) throws(SystemError) -> Enclosure? {
        let search = if let search { search } else { try completeSearch() }
        let prefix = "\(ProcessTable.variable)=\(name):\(app):\(run):"
        let value = environmentMarker.flatMap {
            $0.hasPrefix(prefix) ? String($0.dropFirst(ProcessTable.variable.utf8.count + 1)) : nil
        }
        switch mode {
        case .cgroup:
            guard let found = search.found(run).last(where: { $0.app == app }) else { return nil }
            return try open(found)
        case .processGroup:
            guard environmentMarker != nil else {
                guard let found = search.found(run).first(where: { $0.app == app }) else { return nil }
                return try open(found)
            }
            guard let value, let scan = search.scan else { return nil }
            let family = ProcessFamily(markerValue: value, table: table)
            return family.members(in: scan).isEmpty ? nil : enclosure(app, run, .family(family))
        }
    }

    /// Opens an enclosure that a search has found; `nil` if it no longer exists.
    package func open(_ found: EnclosureSearch.Found) throws(SystemError) -> Enclosure? {
        switch mode {
        case .cgroup(let root):
            guard let name = CgroupLeaf.Name(found.location) else { return nil }
            do {
                let leaf = try CgroupLeaf(existing: name, root: root)
                return enclosure(found.app, found.run, .cgroup(leaf))
            } catch {
                if error.meansGone { return nil }
                throw error
            }
        case .processGroup:
            let family = ProcessFamily(markerValue: found.location, table: table)
            return enclosure(found.app, found.run, .family(family))
        }
    }

    private func completeSearch() throws(SystemError) -> EnclosureSearch {
        let search = try beginSearch()
        while try search.advance() {}
        return search
    }

    /// Returns the enclosures of previous instances with the same name.
    package func orphanedEnclosures() throws(SystemError) -> [Enclosure] {
        var opened: [Enclosure] = []
        for found in try completeSearch().all {
            if let enclosure = try open(found) { opened.append(enclosure) }
        }
        return opened
    }

    /// Kills and removes the enclosures of previous instances with the same name, except those that `sparing` returns true
    /// for.
    /// - Returns: the number of enclosures that still contain processes; call again for these.
    package func cleanUpOrphanedEnclosures(
        sparing: (_ app: String, _ run: UInt64) -> Bool = { _, _ in false }
    ) throws(SystemError) -> Int {
        var dying = 0
        for enclosure in try orphanedEnclosures() where !sparing(enclosure.app, enclosure.run) {
            try enclosure.killAll()
            if try enclosure.remove() == .busy { dying += 1 }
        }
        return dying
    }

    /// Removes the root group and the empty leaves in it. No process is killed.
    package func removeRoot() throws(SystemError) -> RemovalResult {
        guard case .cgroup(let root) = mode else { return .removed }
        for leaf in try leaves(of: root) {
            do {
                guard let name = CgroupLeaf.Name(leaf.location), try CgroupLeaf(existing: name, root: root).remove()
                else { return .busy }
            } catch {
                if !error.meansGone { throw error }
            }
        }
        if rmdir(root.path) == 0 || errno == ENOENT { return .removed }
        if errno == EBUSY || errno == ENOTEMPTY { return .busy }
        throw SystemError(call: "rmdir", errno: errno, path: root.path)
    }

    /// What a process belongs to.
    package enum ProcessOwner: Equatable {
        /// A run of this app, also one that is over for the daemon.
        case app(String)
        /// No app.
        case other
        /// The process no longer exists.
        case ended
    }

    /// Finds the app that a process belongs to. In process-group mode it is found by the marker in the environment of the
    /// process, of the leader of its session, or of one of its ancestors: a process that has left all of them belongs to no app.
    package func owner(of pid: Int32) throws(SystemError) -> ProcessOwner {
        switch mode {
        case .cgroup(let root):
            guard let bytes = try proc.readRecord("cgroup", of: pid),
                let group = CgroupMembership(parsing: bytes).unified
            else { return .ended }
            guard let own = root.mount.group(ofFolder: root.path), group.hasPrefix(own == "/" ? own : own + "/")
            else { return .other }
            let leaf = group.dropFirst(own.utf8.count).split(separator: "/").first ?? ""
            return CgroupLeaf.Name(String(leaf)).map { .app($0.app) } ?? .other
        case .processGroup:
            guard let stat = try proc.stat(of: pid) else { return .ended }
            for candidate in [pid, stat.session] where candidate > 0 {
                if let app = try markedApp(candidate) { return .app(app) }
            }
            var parent = stat.parent
            for _ in 0..<ProcessFamily.mostAncestors where parent > 1 && parent != getpid() {
                if let app = try markedApp(parent) { return .app(app) }
                guard let next = try proc.stat(of: parent)?.parent else { break }
                parent = next
            }
            return .other
        }
    }

    private func markedApp(_ pid: Int32) throws(SystemError) -> String? {
        guard pid != getpid(), let stat = try proc.stat(of: pid), let marker = try table.marker(of: stat) else {
            return nil
        }
        return RunMarker(marker, of: name)?.app
    }

    private func enclosure(
        _ app: String, _ run: UInt64, _ kind: Enclosure.Kind
    ) -> Enclosure {
        Enclosure(app: app, run: run, kind: kind, proc: proc)
    }

    private func leaves(of root: CgroupRoot) throws(SystemError) -> [EnclosureSearch.Found] {
        try subfolders(of: root.path).compactMap { name in
            CgroupLeaf.Name(name).map { EnclosureSearch.Found(app: $0.app, run: $0.run, location: name) }
        }
    }
}
