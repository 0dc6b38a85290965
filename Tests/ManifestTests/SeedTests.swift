import Glibc
import LifecycleCore
import ManifestProperties
import Testing

@testable import Manifest

/// Inputs that the fuzzer saved: each one covers code that no other input covers, or once violated a property.
@Suite("Fuzzer seeds")
struct SeedTests {
    private func seeds() throws -> [(name: String, bytes: [UInt8])] {
        let folder = "\(#filePath)".replacing("SeedTests.swift", with: "Seeds")
        let stream = try #require(opendir(folder), "\(folder)")
        defer { closedir(stream) }
        var seeds: [(String, [UInt8])] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard !name.hasPrefix(".") else { continue }
            let file = try #require(fopen("\(folder)/\(name)", "r"))
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            let count = fread(&bytes, 1, bytes.count, file)
            seeds.append((name, Array(bytes.prefix(count))))
        }
        return seeds.sorted { $0.0 < $1.0 }
    }

    @Test("every property holds for every seed")
    func properties() throws {
        let seeds = try seeds()
        #expect(seeds.count > 50)
        for seed in seeds { #expect(violations(seed.bytes) == [], "\(seed.name)") }
    }

    @Test("the seeds include valid manifests, invalid ones, and ones with warnings")
    func variety() throws {
        let id = try #require(AppID("a"))
        var kinds: Set<String> = []
        for seed in try seeds() {
            let (manifest, diagnostics) = parseManifest(
                id: id, sources: [SourceFile(path: "a", bytes: seed.bytes)], memory: nil, specifiers: machineValues)
            kinds.insert(manifest == nil ? "invalid" : diagnostics.isEmpty ? "valid" : "with warnings")
        }
        #expect(kinds == ["invalid", "valid", "with warnings"])
    }

    @Test("the dictionary of the fuzzer has every key")
    func dictionary() throws {
        let path = "\(#filePath)".replacing("Tests/ManifestTests/SeedTests.swift", with: "Sources/scripts/fuzz.dict")
        let file = try #require(fopen(path, "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = fread(&bytes, 1, bytes.count, file)
        let words = Set(String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\n"))
        let id = try #require(AppID("a"))
        let keys =
            AppManifest.settings(memory: nil, Specifiers(id: id, values: machineValues)).map(\.key)
            + ManagerConfiguration.settings(memory: nil).map(\.key)
        #expect(keys.filter { !words.contains("\"\($0)=\"") } == [])
    }

    @Test("a manifest with values that need quoting is equal after rendering and parsing")
    func roundTrip() throws {
        var manifest = AppManifest(id: try #require(AppID("a")))
        manifest.exec = ["/a", "b c\"\\%$\u{1}", ""]
        manifest.environment = ["A= ", "B=\n"]
        manifest.hooks = [.beforeSuspend: [Command(words: ["/b", "$1 %"]), Command(words: ["/c"])]]
        manifest.policy.hooks = HookKinds(.beforeSuspend)
        manifest.sockets.all = [HeldSocket(.stream, .path("/a\\")), HeldSocket(.datagram, .abstract("%"))]
        manifest.policy.holdsSockets = true
        manifest.name = "x%\\"
        let reading = try read(rendered(manifest))
        #expect(reading.manifest == manifest, "\(rendered(manifest)) \(reading.lines)")
    }
}
