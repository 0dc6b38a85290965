import Control
import Glibc
import JSON
import LifecycleCore
import Manifest
import Systemd

/// `enable` and `disable`: links that give instances of templates a file, as systemctl makes them for units.
extension Session {
    /// A link that was made or removed, or is there already.
    private struct Link {
        let id: AppID
        let path: String
        let target: String?
        let isChanged: Bool
    }

    func enable() throws(Failure) -> Int32 {
        let names = apps.contains(where: isPattern) ? try expand(apps, connect()) : apps
        let folders = try manifestFolders()
        show(note: folders.note)
        var links: [Link] = []
        var status: Int32 = 0
        for name in names {
            do throws(Failure) {
                links.append(try makeLink(try instance(name), in: folders))
            } catch {
                report(error)
                status = error.status
            }
        }
        try showLinks(links) { "Created \(escaped($0.path)) → \(escaped($0.target ?? ""))." }
        if links.contains(where: \.isChanged), !reloadForLinks(isNeeded: invocation.has(.now)) { status = 1 }
        guard invocation.has(.now), !links.isEmpty else { return status }
        return max(status, try request("launch", links.map(\.id.name), "--background"))
    }

    func disable() throws(Failure) -> Int32 {
        let folders = try manifestFolders()
        show(note: folders.note)
        let folder = folders.apps
        var links: [Link] = []
        var status: Int32 = 0
        for name in linkNames(folder) {
            do throws(Failure) {
                links.append(try removeLink(try instance(name), in: folder))
            } catch {
                report(error)
                status = error.status
            }
        }
        try showLinks(links) { "Removed \(escaped($0.path))." }
        if links.contains(where: \.isChanged), !reloadForLinks(isNeeded: invocation.has(.now)) { status = 1 }
        guard invocation.has(.now), !links.isEmpty else { return status }
        // An instance that did not run is unknown without its link.
        var ids = try known(links.map(\.id.name))
        if !ids.isEmpty { status = max(status, try request("terminate", ids)) }
        // One that ran is there for as long as the daemon holds sockets for it.
        ids = try known(ids)
        return ids.isEmpty ? status : max(status, try request("terminate", ids, "--remove"))
    }

    /// Those of the names that are apps.
    private func known(_ names: [String]) throws(Failure) -> [String] {
        let all = Set(try connect().call("List", as: [AppStatus].self).map(\.id))
        return names.filter(all.contains)
    }

    // MARK: Names

    private func instance(_ name: String) throws(Failure) -> AppID {
        guard let id = AppID(name), id.template != nil else {
            throw Failure(
                "\(invocation.verb.rawValue): '\(escaped(name))' is no instance of a template.",
                hint:
                    "To launch an app at each start of the daemon, set LaunchAtStart= in its manifest (greenroom.app(5))."
            )
        }
        return id
    }

    /// The operands, with patterns replaced by the links that they match.
    private func linkNames(_ folder: String) -> [String] {
        let existing = folderEntries(folder).filter { $0.hasSuffix(".app") && $0.contains("@") }
            .map { String($0.dropLast(4)) }.filter { AppID($0) != nil && isLink("\(folder)/\($0).app") }.sorted()
        var seen: Set<String> = []
        return apps.flatMap { word in
            guard isPattern(word) else { return [word] }
            let matches = existing.filter { isMatch($0, word) }
            if matches.isEmpty { reportUnmatched(word) }
            return matches
        }.filter { seen.insert($0).inserted }
    }

    // MARK: Links

    private func makeLink(_ id: AppID, in folders: ManifestFolders) throws(Failure) -> Link {
        let folder = folders.apps
        let (name, template) = ("\(id).app", "\(id.template ?? "")@.app")
        let path = "\(folder)/\(name)"
        let vendor = "\(folders.vendor)/\(template)"
        let target: String
        if access("\(folder)/\(template)", F_OK) == 0 {
            target = template
        } else if access(vendor, F_OK) == 0 {
            target = vendor
        } else {
            throw Failure(
                "enable: there is no template '\(id.template ?? "")@': neither \(escaped("\(folder)/\(template)")) nor "
                    + "\(escaped(vendor)) exists.")
        }
        if symlink(target, path) == 0 { return Link(id: id, path: path, target: target, isChanged: true) }
        guard errno == EEXIST else {
            throw Failure("Cannot create \(escaped(path)): \(String(cString: strerror(errno)))")
        }
        let existing = linkTarget(path)
        guard existing == target || existing == "\(folder)/\(template)" else {
            let what = existing.map { "is a link to \(escaped($0))" } ?? "is a file of its own"
            throw Failure("enable: \(escaped(path)) \(what); it is not changed.")
        }
        return Link(id: id, path: path, target: target, isChanged: false)
    }

    private func removeLink(_ id: AppID, in folder: String) throws(Failure) -> Link {
        let path = "\(folder)/\(id).app"
        guard isLink(path) else {
            guard access(path, F_OK) != 0 else {
                throw Failure("disable: \(escaped(path)) is a file of its own; it is not removed.")
            }
            return Link(id: id, path: path, target: nil, isChanged: false)
        }
        guard unlink(path) == 0 || errno == ENOENT else {
            throw Failure("Cannot remove \(escaped(path)): \(String(cString: strerror(errno)))")
        }
        return Link(id: id, path: path, target: nil, isChanged: true)
    }

    private func isLink(_ path: String) -> Bool { linkTarget(path) != nil }

    /// Where a symbolic link leads, as it is written; `nil` for everything else.
    func linkTarget(_ path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &buffer, buffer.count)
        guard count >= 0 else { return nil }
        return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Like systemctl, it says nothing of links that are there already, or not there.
    private func showLinks(_ links: [Link], _ sentence: (Link) -> String) throws(Failure) {
        guard !wantsJSON else {
            return try show(
                .array(
                    links.map { link in
                        .object(
                            [("app", .string(link.id.name)), ("path", .string(link.path))]
                                + (link.target.map { [("target", .string($0))] } ?? [])
                                + [("changed", .bool(link.isChanged))])
                    }))
        }
        try show(links.filter(\.isChanged).map { sentence($0) + "\n" }.joined())
    }

    // MARK: The daemon

    /// Lets the daemon read its files again. A daemon that does not run finds the links when it starts.
    ///
    /// - Parameter isNeeded: whether a daemon that does not run is an error.
    /// - Returns: `false` after an error, which was printed.
    private func reloadForLinks(isNeeded: Bool) -> Bool {
        let client: Client
        do throws(Failure) {
            client = try connect()
        } catch {
            if isNeeded { report(error) }
            return !isNeeded
        }
        do throws(Failure) {
            let result = try client.withAuthorization { () throws(Failure) in
                try client.call("Reload", as: ReloadResult.self)
            }
            for line in result.errors { report(Failure(line)) }
            return result.errors.isEmpty
        } catch {
            report(error)
            return false
        }
    }

    /// Runs another verb for the instances. With --json, its result is not printed: there is one document.
    private func request(_ verb: String, _ ids: [String], _ options: String...) throws(Failure) -> Int32 {
        var line = [verb] + ids + options
        for option in [Option.system, .user] where invocation.has(option) { line.append(option.long) }
        if let runtime = invocation.options[.runtime] { line += [Option.runtime.long, runtime] }
        guard case .run(let invocation) = Invocation.parse(line) else { throw Failure("\(verb): invalid arguments") }
        var session = Session(invocation, environment)
        session.isSilent = wantsJSON
        return try session.perform()
    }
}
