import Control
import Glibc
import LifecycleCore
import Manifest
import Posix
import Systemd

/// `certify`: takes a program through its lifecycle under a daemon of its own, and reports what it handled.
extension Session {
    func certify() throws(Failure) -> Int32 {
        let daemon = try CertifyDaemon(isForRoot: isForRoot, environment)
        CertifyInterrupt.watch()
        do throws(Failure) {
            let report = try certify(daemon)
            daemon.stop(keepsFolder: invocation.has(.keep))
            if invocation.has(.keep) {
                show(note: "The log and the folders of greenroomd are in \(escaped(daemon.folder)).")
            }
            return report.status
        } catch {
            daemon.stop(keepsFolder: invocation.has(.keep))
            throw error
        }
    }

    private func certify(_ daemon: CertifyDaemon) throws(Failure) -> CertifyReport {
        let manifest = try invocation.isCommand ? writeManifest(daemon) : copyManifest(daemon)
        try daemon.start()
        let endpoint = Endpoint(runtime: daemon.runtime)
        let client = try Client(endpoint, Client.Options(isInteractive: false, escapesText: false))
        let options = CertifyOptions(invocation)
        let app = Rehearsal(manifest, options, daemon, client)
        if let error = try app.status().error { throw Failure("certify: \(escaped(error))") }
        var report = CertifyReport(app: app.id)
        for step in options.steps {
            let outcome = try step.perform(app)
            let point = CertifyReport.Point(name: step.name, title: step.title, rules: step.rules, outcome: outcome)
            report.points.append(point)
            if !wantsJSON { try show(CertifyReport.line(point, screen)) }
        }
        try wantsJSON ? show(report.json) : show("\n\(report.summary)\n")
        if let path = invocation.options[.junit] { try writeJUnit(report, to: environment.absolutePath(path)) }
        return report
    }

    private func writeJUnit(_ report: CertifyReport, to path: String) throws(Failure) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw Failure("Cannot create \(escaped(path)): \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        try write(report.junit, to: descriptor)
    }

    // MARK: The manifest

    /// Overrides what would run the app without a request.
    private static let ownSettings = "[App]\nLaunchAtStart=no\nRelaunch=no\n"
    /// A name that comes after others.
    private static let ownDropIn = "zz-certify.conf"

    /// The manifest of an installed app, with its drop-ins.
    private func copyManifest(_ daemon: CertifyDaemon) throws(Failure) -> AppManifest {
        let folders = try manifestFolders()
        show(note: folders.note)
        guard let id = AppID(apps[0]) else { throw Failure("certify: invalid app ID '\(escaped(apps[0]))'") }
        let names = [id.template.map { "\($0)@" }, id.name].compactMap { $0 }
        var sources: [SourceFile] = []
        var dropIns: [SourceFile] = []
        for name in names {
            for folder in [folders.vendor, folders.apps] {
                if case .success(let bytes) = readFile("\(folder)/\(name).app") {
                    sources = [SourceFile(path: "\(folder)/\(name).app", bytes: bytes)]
                    try daemon.write("\(name).app", bytes)
                }
                for file in dropInNames(folderEntries("\(folder)/\(name).app.d")) {
                    guard case .success(let bytes) = readFile("\(folder)/\(name).app.d/\(file)") else { continue }
                    dropIns.append(SourceFile(path: "\(folder)/\(name).app.d/\(file)", bytes: bytes))
                    try daemon.write("\(name).app.d/\(file)", bytes)
                }
            }
        }
        guard let source = sources.first else {
            throw Failure("certify: there is no manifest \(escaped(id.name)).app in \(escaped(folders.apps))")
        }
        // Apps of packages are not to be launched by this daemon.
        for entry in folderEntries(folders.vendor)
        where entry.hasSuffix(".app") && !names.contains(String(entry.dropLast(4))) {
            try daemon.write(entry, [])
        }
        try daemon.write("\(id.name).app.d/\(Self.ownDropIn)", Array(Self.ownSettings.utf8))
        return try parsed(id, [source] + dropIns)
    }

    /// The manifest of a command, as `init` would write it.
    private func writeManifest(_ daemon: CertifyDaemon) throws(Failure) -> AppManifest {
        let name = String(operands[0].split(separator: "/").last ?? "")
        guard let id = AppID(name), id.template == nil else {
            throw Failure("certify: '\(escaped(name))' cannot be the name of an app")
        }
        let folder = environment.absolutePath(".")
        let directory = try quoted(folder, keepingSpecifiers: false)
        var more = directory == folder ? "WorkingDirectory=\(folder)\n" : ""
        // A program that takes no part would be awake for StartupSec=, which is long for a test.
        more += "StartupSec=2s\n"
        if environment.isRoot, isForRoot { more += "User=root\n" }
        for setting in invocation.settings {
            let key = String(setting.prefix { $0 != "=" })
            guard let section = manifestSection(ofKey: key) else {
                throw Failure(
                    "--property: unknown key '\(escaped(key))' (greenroom.app(5))", status: Failure.wrongUsage)
            }
            more += "[\(section)]\n\(setting)\n"
        }
        let text = try manifest(of: id, named: name, operands, more)
        try daemon.write("\(name).app", Array(text.utf8))
        return try parsed(id, [SourceFile(path: "\(name).app", bytes: Array(text.utf8))])
    }

    private func parsed(_ id: AppID, _ sources: [SourceFile]) throws(Failure) -> AppManifest {
        let (manifest, diagnostics) = parseManifest(
            id: id, sources: sources, memory: nil,
            specifiers: SpecifierValues(isForRoot: isForRoot, environment, .read()))
        guard let manifest else {
            let error = diagnostics.first { $0.severity == .error }
            throw Failure("certify: \(escaped(error?.message ?? "the manifest has an error"))")
        }
        return manifest
    }
}
