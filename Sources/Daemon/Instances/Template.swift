import LifecycleCore
import Manifest
import Posix

/// The files of a template: each is read from disk once, for all of its instances, and stays as it was read until the next
/// reading of the manifests.
final class Template {
    /// The name without the `@`.
    let name: String
    /// The manifest and the drop-ins of the template; empty: there are only drop-ins, or the manifest is masked.
    private let paths: [String]
    private let stamps: [FileStamp?]
    private var sources: [String: Result<SourceFile, any Error>] = [:]

    /// - Parameter paths: the manifest and the drop-ins, in their order.
    init(_ name: String, _ paths: [String], in folders: Folders) {
        self.name = name
        self.paths = paths
        stamps = FileStamp.ofManifest(name + "@", Array(paths.dropFirst()), folders)
    }

    /// Whether it has a manifest: otherwise only an app with a file of its own can be an instance.
    var isDefined: Bool { !paths.isEmpty }

    /// Whether the manifest or a drop-in was changed, replaced, removed or added since it was read.
    func hasChanged(in folders: Folders) -> Bool {
        FileStamp.ofManifest(name + "@", Array(paths.dropFirst()), folders) != stamps
    }

    /// Whether a file is the manifest or a drop-in of the template, and not one of an instance.
    func owns(_ path: String) -> Bool {
        path.hasSuffix("/\(name)@.app") || path.contains("/\(name)@.app.d/")
    }

    /// Reads the files, in steps.
    /// - Returns: whether there is more to read.
    func read() -> Bool {
        guard let path = paths.first(where: { sources[$0] == nil }) else { return false }
        _ = try? source(path)
        return true
    }

    /// Why a file cannot be read.
    var failure: (any Error)? {
        for result in sources.values { if case .failure(let error) = result { return error } }
        return nil
    }

    /// The contents of the files of an instance, in their order. Those of the template are not read again, also if the file of
    /// the instance is a link to that of the template.
    func sources(of files: [String]) throws -> [SourceFile] {
        try files.enumerated().map { position, path in
            if position == 0, !owns(path), let own = paths.first, let stamp = FileStamp(path), stamp == FileStamp(own) {
                return try source(own)
            }
            return try owns(path) ? source(path) : Self.read(path)
        }
    }

    private func source(_ path: String) throws -> SourceFile {
        if let known = sources[path] { return try known.get() }
        let result = Result { try Self.read(path) }
        sources[path] = result
        return try result.get()
    }

    static func read(_ path: String) throws -> SourceFile {
        SourceFile(path: path, bytes: try readFile(at: path, limit: SourceFile.maximumSize))
    }
}
