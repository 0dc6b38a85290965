import LifecycleCore
import Manifest
import Testing

/// The result of parsing a manifest and its drop-ins.
struct Reading {
    var manifest: AppManifest?
    var diagnostics: [Diagnostic]

    /// The diagnostics as text: `a.app:2:11: error: …`.
    var lines: [String] { diagnostics.map(\.description) }
}

/// Names the files: `first`, `1.conf`, `2.conf`, …
private func sources(_ files: [[UInt8]], _ first: String) -> [SourceFile] {
    files.enumerated().map { SourceFile(path: $0.offset == 0 ? first : "\($0.offset).conf", bytes: $0.element) }
}

/// The machine's memory in bytes. Percentages of 10,000 are integers.
let memory: UInt64 = 10_000

/// The values of a machine, for the specifiers that do not depend on the app.
let machineValues: SpecifierValues = {
    var values = SpecifierValues()
    values.runtimeDirectory = "/run"
    values.stateDirectory = "/var/lib"
    values.cacheDirectory = "/var/cache"
    values.configurationDirectory = "/etc"
    values.temporaryDirectory = "/tmp"
    values.largeTemporaryDirectory = "/var/tmp"
    values.userName = "root"
    values.userID = 0
    values.groupName = "root"
    values.groupID = 0
    values.homeDirectory = "/root"
    values.shell = "/bin/bash"
    values.hostName = "host.example.org"
    values.machineID = "3d1219c7c4c5404aaa1f6d2a48adfda4"
    values.bootID = "082f65d82ee24955a36e57ff1c6d31fb"
    values.kernelRelease = "6.1.0-28-amd64"
    values.architecture = "x86-64"
    return values
}()

func read(bytes files: [UInt8]..., memory: UInt64? = memory) throws -> Reading {
    let id = try #require(AppID("a"))
    let (manifest, diagnostics) = parseManifest(
        id: id, sources: sources(files, "a.app"), memory: memory, specifiers: machineValues)
    return Reading(manifest: manifest, diagnostics: diagnostics)
}

func read(_ text: String, _ dropIns: String..., memory: UInt64? = memory, as name: String = "a") throws -> Reading {
    let id = try #require(AppID(name))
    let files = sources(([text] + dropIns).map { Array($0.utf8) }, "a.app")
    let (manifest, diagnostics) = parseManifest(
        id: id, sources: files, memory: memory, specifiers: machineValues)
    return Reading(manifest: manifest, diagnostics: diagnostics)
}

/// The text of a manifest with these settings in a section. The first setting is on line 4.
func manifest(_ section: String, _ settings: String...) -> String {
    "[App]\nExecStart=/bin/app\n[\(section)]\n" + settings.map { $0 + "\n" }.joined()
}

/// Parses a manifest with these settings and expects no error.
func accepted(_ section: String, _ settings: String...) throws -> AppManifest {
    let text = "[App]\nExecStart=/bin/app\n[\(section)]\n" + settings.map { $0 + "\n" }.joined()
    let reading = try read(text)
    #expect(reading.diagnostics.filter { $0.severity == .error } == [])
    return try #require(reading.manifest, "\(settings)")
}

/// Expects exactly one error for a value: at the offset of the value, with the key and the description of valid values.
func expectRefused(
    _ section: String, _ key: String, _ value: String, at offset: Int = 0, _ words: String = "",
    sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let reading = try read(manifest(section, "\(key)=\(value)"))
    #expect(reading.manifest == nil, "\(key)=\(value)", sourceLocation: sourceLocation)
    let errors = reading.diagnostics.filter { $0.severity == .error }
    try #require(errors.count == 1, "\(key)=\(value): \(reading.lines)", sourceLocation: sourceLocation)
    #expect(errors[0].file == "a.app", sourceLocation: sourceLocation)
    #expect(errors[0].line == 4, sourceLocation: sourceLocation)
    #expect(errors[0].column == key.utf8.count + 2 + offset, "\(errors[0])", sourceLocation: sourceLocation)
    #expect(errors[0].message.hasPrefix("\(key)=: "), sourceLocation: sourceLocation)
    #expect(errors[0].message.contains("expected "), sourceLocation: sourceLocation)
    #expect(
        errors[0].message.contains(words), "\(errors[0]) does not contain '\(words)'", sourceLocation: sourceLocation)
}

func readConfiguration(_ text: String, _ dropIns: String..., memory: UInt64? = memory) -> (
    configuration: ManagerConfiguration?, lines: [String]
) {
    let files = sources(([text] + dropIns).map { Array($0.utf8) }, "greenroom.conf")
    let (configuration, diagnostics) = parseConfiguration(sources: files, memory: memory)
    return (configuration, diagnostics.map(\.description))
}
