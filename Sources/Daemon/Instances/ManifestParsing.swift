import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix

/// Parses manifests with what they need to know of the machine. It is read once for all manifests of a reading.
struct ManifestParsing {
    /// The machine's memory in bytes, for percentages; `nil`: unknown.
    let memory: UInt64?
    let specifiers: SpecifierValues

    init(folders: Folders) {
        memory = try? MemoryInfoReader().read().total
        specifiers = SpecifierValues(folders: folders, machine: .read())
    }

    func parse(_ id: AppID, _ sources: [SourceFile]) -> (AppManifest?, [Diagnostic]) {
        let (manifest, diagnostics) = parseManifest(id: id, sources: sources, memory: memory, specifiers: specifiers)
        if diagnostics.isEmpty { return (manifest, diagnostics) }
        guard let protected = Self.protected(sources) else { return (manifest, diagnostics) }
        return parseManifest(id: id, sources: protected, memory: memory, specifiers: specifiers)
    }

    /// The manifest of a command of `greenroomctl run`.
    func parse(_ id: AppID, _ command: RunSettings) -> Result<AppManifest, RunSettingsProblem> {
        command.manifest(of: id, memory: memory, specifiers: specifiers)
    }

    /// Parses greenroom.conf and its drop-ins.
    func parseConfiguration(_ sources: [SourceFile]) -> (ManagerConfiguration?, [Diagnostic]) {
        let (parsed, diagnostics) = Manifest.parseConfiguration(sources: sources, memory: memory)
        if diagnostics.isEmpty { return (parsed, diagnostics) }
        guard let protected = Self.protected(sources) else { return (parsed, diagnostics) }
        return Manifest.parseConfiguration(sources: protected, memory: memory)
    }

    /// The files with those marked that not every user may read; `nil`: there is none. Every user may read the diagnostics of
    /// root's daemon, and the readers of another one's can read its files.
    private static func protected(_ sources: [SourceFile]) -> [SourceFile]? {
        guard geteuid() == 0 else { return nil }
        var sources = sources
        for index in sources.indices { sources[index].mayBeQuoted = isReadableByOthers(sources[index].path) }
        return sources.allSatisfy(\.mayBeQuoted) ? nil : sources
    }
}
