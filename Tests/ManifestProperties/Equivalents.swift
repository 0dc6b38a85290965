import LifecycleCore
import Manifest

extension Checker {
    /// Checks that changes without meaning do not change the result.
    mutating func checkEquivalents(_ id: AppID, _ sources: [SourceFile], _ manifest: AppManifest?) {
        // The changes add bytes and files, which makes a difference near the limits.
        guard sources.allSatisfy({ $0.bytes.count < 10_000 }), sources.count < 50 else { return }
        func parsed(_ change: (SourceFile) -> [UInt8]) -> AppManifest? {
            let changed = sources.map { SourceFile(path: $0.path, bytes: change($0)) }
            return parsedManifest(id, changed).0
        }
        let empty = SourceFile(path: "empty", bytes: [])
        let more = parsedManifest(id, [empty] + sources + [empty])
        hold(more.0 == manifest, "empty files change nothing")
        hold(
            parsed { $0.bytes + Array("\n\n[X-Fuzz]\nA=b\n".utf8) } == manifest,
            "a section with the prefix X- changes nothing")
        if !sources.contains(where: { $0.bytes.contains(UInt8(ascii: "\r")) }) {
            hold(parsed { carriageReturns($0.bytes) } == manifest, "CRLF line endings change nothing")
        }
        guard !sources.contains(where: { $0.bytes.starts(with: byteOrderMark) }) else { return }
        hold(parsed { byteOrderMark + $0.bytes } == manifest, "a byte order mark changes nothing")
        hold(parsed { Array(" # a comment\\\n".utf8) + $0.bytes } == manifest, "a comment changes nothing")
    }

    private func carriageReturns(_ bytes: [UInt8]) -> [UInt8] {
        bytes.flatMap { $0 == UInt8(ascii: "\n") ? [UInt8(ascii: "\r"), $0] : [$0] }
    }

    /// Checks the file selection with the lines of the input as file names.
    mutating func checkFiles(_ bytes: [UInt8]) {
        let names = bytes.prefix(4096).split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
        let vendor = FolderListing(path: "/v", apps: names + ["a.app"], dropIns: ["a.app.d": names])
        let config = FolderListing(
            path: "/c", apps: Array(names.prefix(names.count / 2)), dropIns: ["a.app.d": names],
            configurationDropIns: names)
        let files = AppFiles(vendor: vendor, config: config)
        for id in vendor.apps.union(config.apps) {
            let paths = files.files(of: id) ?? []
            hold(
                paths.first == "/v/apps/\(id).app" || paths.first == "/c/apps/\(id).app",
                "the manifest is the first file")
            hold(paths.count <= maximumSources + 1, "the number of drop-ins is limited")
            hold(id.name == "a" || paths.count == 1, "drop-ins apply only to their app")
        }
        for name in files.templates {
            hold(templateName("\(name)@") == name, "a template has a valid name")
            guard let instance = AppID("\(name)@1"), !vendor.apps.contains(instance) else { continue }
            hold(
                files.files(of: instance) == files.files(ofTemplate: name), "an instance has the files of its template")
        }
        for path in files.configuration {
            hold(path.utf8.starts(with: "/c/greenroom.conf.d/".utf8), "drop-ins are in the drop-in directory")
            hold(path.utf8.suffix(5).elementsEqual(".conf".utf8), "drop-ins match *.conf")
        }
    }
}
