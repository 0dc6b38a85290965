import LifecycleCore
import Manifest

extension Checker {
    /// Other ways to write the same say the same.
    mutating func checkEquivalents(_ id: AppID, _ sources: [SourceFile], _ manifest: AppManifest?) {
        // At the limits it makes a difference.
        guard sources.allSatisfy({ $0.bytes.count < 10_000 }), sources.count < 50 else { return }
        func parsed(_ change: (SourceFile) -> [UInt8]) -> AppManifest? {
            let changed = sources.map { SourceFile(path: $0.path, bytes: change($0)) }
            return parseManifest(id: id, sources: changed, memory: machineMemory).0
        }
        let empty = SourceFile(path: "empty", bytes: [])
        let more = parseManifest(id: id, sources: [empty] + sources + [empty], memory: machineMemory)
        hold(more.0 == manifest, "empty files change nothing")
        hold(parsed { $0.bytes + Array("\n\n[X-Fuzz]\nA=b\n".utf8) } == manifest, "a section of others changes nothing")
        if !sources.contains(where: { $0.bytes.contains(UInt8(ascii: "\r")) }) {
            hold(parsed { carriageReturns($0.bytes) } == manifest, "other systems' line ends change nothing")
        }
        guard !sources.contains(where: { $0.bytes.starts(with: byteOrderMark) }) else { return }
        hold(parsed { byteOrderMark + $0.bytes } == manifest, "a byte order mark changes nothing")
        hold(parsed { Array(" # a comment\\\n".utf8) + $0.bytes } == manifest, "a comment changes nothing")
    }

    private func carriageReturns(_ bytes: [UInt8]) -> [UInt8] {
        bytes.flatMap { $0 == UInt8(ascii: "\n") ? [UInt8(ascii: "\r"), $0] : [$0] }
    }

    /// The lines as names in folders.
    mutating func checkFiles(_ bytes: [UInt8]) {
        let names = bytes.prefix(4096).split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
        let vendor = FolderListing(path: "/v", apps: names + ["a.app"], dropIns: ["a.app.d": names])
        let config = FolderListing(
            path: "/c", apps: Array(names.prefix(names.count / 2)), dropIns: ["a.app.d": names],
            configurationDropIns: names)
        let files = AppFiles(vendor: vendor, config: config)
        let selected = files.selected
        hold(zip(selected, selected.dropFirst()).allSatisfy { $0.id < $1.id }, "apps come in order, each once")
        for (id, paths) in selected {
            hold(paths.first == "/v/apps/\(id).app" || paths.first == "/c/apps/\(id).app", "the manifest comes first")
            hold(paths.count <= maximumSources + 1, "drop-ins are bounded")
            hold(id.name == "a" || paths.count == 1, "drop-ins are of their app alone")
        }
        for path in files.configuration {
            hold(path.utf8.starts(with: "/c/greenroom.conf.d/".utf8), "drop-ins come from their folder")
            hold(path.utf8.suffix(5).elementsEqual(".conf".utf8), "drop-ins are *.conf")
        }
    }
}
