import LifecycleCore
import ManifestProperties
import Schedule
import Testing

@testable import Manifest

@Suite("Drop-ins")
struct DropInTests {
    @Test("a later file overrides single values and adds to lists")
    func order() throws {
        let manifest = try #require(
            try read(
                "[App]\nExecStart=/a\nName=1\nEnvironment=A=1\nUMask=1\n", "[App]\nName=2\nEnvironment=B=2\n",
                "[App]\nName=3\nEnvironment=C=3\n"
            ).manifest)
        #expect(manifest.name == "3")
        #expect(manifest.umask == 1)
        #expect(manifest.environment == ["A=1", "B=2", "C=3"])
    }

    @Test("an empty value empties a list")
    func emptyLists() throws {
        let manifest = try #require(
            try read(
                "[App]\nExecStart=/a\nEnvironment=A=1\nStateDirectory=a\nCacheDirectory=a\nRuntimeDirectory=a\n"
                    + "SupplementaryGroups=a\n[Lifecycle]\nBackgroundModes=push\n[Wake]\nListenStream=80\n",
                "[App]\nExecStart=\nExecStart=/b\nEnvironment=\nEnvironment=B=2\nStateDirectory=\nCacheDirectory=\n"
                    + "RuntimeDirectory=\nSupplementaryGroups=\n[Lifecycle]\nBackgroundModes=\nBackgroundModes=fetch\n"
                    + "[Wake]\nListenStream=\n"
            ).manifest)
        #expect(manifest.exec == ["/b"])
        #expect(manifest.environment == ["B=2"])
        #expect(manifest.stateDirectory + manifest.cacheDirectory + manifest.runtimeDirectory == [])
        #expect(manifest.supplementaryGroups == [])
        #expect(manifest.policy.backgroundModes == .fetch)
        #expect(manifest.sockets.all == [])
    }

    @Test("an empty value resets every setting to its default")
    func emptyValues() throws {
        let full = try fullManifest()
        let text = rendered(full)
        for setting in AppManifest.settings(memory: nil, Specifiers(id: full.id, values: machineValues)) {
            #expect(text.contains("\n\(setting.key)="), "\(setting.key)= is missing from the rendered manifest")
        }
        #expect(try read(text).manifest == full)
        let emptied = text.split(separator: "\n").filter { !$0.hasPrefix("ExecStart=") }
            .map { $0.contains("=") ? $0.prefix { $0 != "=" } + "=" : $0 }.joined(separator: "\n")
        var defaults = AppManifest(id: full.id)
        defaults.exec = full.exec
        #expect(try read(text, emptied).manifest == defaults)
    }

    private func setProgram(of full: inout AppManifest) {
        // Not in /, which ReadOnlyProgram= refuses.
        full.exec = ["/bin/a"]
        full.readOnlyProgram = true
        full.programDigest = "sha256:" + String(repeating: "0a", count: 32)
    }

    private func setHooks(of full: inout AppManifest) {
        for kind in HookKind.allCases {
            full.hooks[kind] = [Command(words: ["/h"])]
            full.policy.hooks.insert(HookKinds(kind))
        }
    }

    private func setMemory(of full: inout AppManifest) {
        full.memoryMax = 1
        full.suspendedMemoryMax = 1
        full.policy.jetsamPriority = 1
        full.policy.memoryHigh = 1
        full.policy.suspendedMemoryHigh = 1
    }

    private func setTimers(of full: inout AppManifest) {
        full.timers.calendar = [CalendarEvent("Mon 08:30 UTC"), CalendarEvent("daily")].compactMap { $0 }
        full.timers.sinceActive = [5_000_000]
        full.timers.sinceBoot = [5_000_000]
        full.timers.isPersistent = true
        full.timers.accuracy = 1
        full.timers.randomizedDelay = 2
        full.timers.fetchInterval = 3_600_000_000
        full.policy.hasTimers = true
        full.wakeDistance = 500
        full.unifiedPush = true
        full.wakeDevices = [DeviceMatch("usb"), DeviceMatch("input:ID_A=%,B=c d")].compactMap { $0 }
    }

    private func setSockets(of full: inout AppManifest) {
        full.sockets.all = [
            HeldSocket(.stream, .port(80)), HeldSocket(.datagram, .ipv6("::1", 80)),
            HeldSocket(.sequentialPacket, .path("/run/full")),
        ]
        full.sockets.name = "web"
        full.sockets.user = "u"
        full.sockets.group = "g"
        full.sockets.mode = 0
        full.sockets.directoryMode = 0
        full.sockets.backlog = 5
        full.sockets.ipv6Only = .only
        full.sockets.isFreeBind = true
        full.sockets.reusesPort = true
        full.sockets.keepsAlive = true
        full.sockets.hasNoDelay = true
        full.sockets.isNonBlocking = true
        full.policy.holdsSockets = true
        full.policy.connectionWait = .seconds(5)
        full.policy.unloadAfter = .seconds(5)
        full.policy.reclaim = .yes
        full.policy.hidesSnapshot = true
        full.keepsSnapshot = true
        full.notices = .alert
        full.windowAppID = "org.full"
        full.policy.seat = "seat1"
        full.policy.isEssential = true
        full.sceneRoles = [.panel]
        full.policy.waitsForRelease = true
        full.policy.forbidsBackgroundGPU = true
        full.releases = ["/dev/video0", "lock:/var/lib/db"]
    }

    /// A manifest in which no setting has its default value.
    private func fullManifest() throws -> AppManifest {
        var full = AppManifest(id: try #require(AppID("a")))
        setProgram(of: &full)
        full.name = "Full"
        full.pidFile = "/run/full.pid"
        full.policy.killMode = .process
        full.policy.role = .home
        full.policy.terminateSuspended = .notify
        full.user = "u"
        full.group = "g"
        full.workingDirectory = "/w"
        full.umask = 0
        full.limits = [0, 1, 2, 3, 4, 6, 7, 8, 9].map { ResourceLimitSetting(resource: $0, soft: 1, hard: 2) }
        full.supplementaryGroups = ["s"]
        full.environment = ["A=1"]
        full.environmentFiles = [EnvironmentFile(path: "/e", isOptional: true)]
        full.standardOutput = .file("/o")
        full.standardError = .append("/o")
        full.ignoresSIGPIPE = false
        full.stateDirectory = ["s"]
        full.cacheDirectory = ["c"]
        full.runtimeDirectory = ["r"]
        setSockets(of: &full)
        setHooks(of: &full)
        setTimers(of: &full)
        full.policy.notifications = NotificationKinds(rawValue: 0x1101)
        full.settingsFile = "/c"
        full.policy.backgroundModes = [.push, .fetch]
        full.policy.usesProtectedData = true
        full.oomScoreAdjust = 1
        full.noNewPrivileges = true
        full.urlSchemes = ["mailto", "x-photos"]
        full.notifyAccess = .main
        full.signals.terminate = 2
        full.signals.resignActive = 10
        full.signals.becomeActive = 10
        full.signals.enterBackground = 10
        full.signals.enterForeground = 10
        full.signals.memoryWarning = 10
        full.signals.taskExpiring = 10
        full.signals.notification = 10
        full.policy.readiness = .notified
        full.policy.relaunch = .always
        full.policy.launchAtStart = .background
        full.policy.launchDeadline = nil
        full.policy.backgroundDeadline = .seconds(1)
        full.policy.terminateDeadline = .seconds(1)
        full.policy.extendedDeadlineMax = .seconds(1)
        full.policy.backgroundTime = .seconds(1)
        full.policy.expirationNotice = .seconds(1)
        full.policy.suspendDelay = .seconds(2)
        full.policy.watchdog = .seconds(1)
        full.policy.suspension = .no
        full.policy.exitsOnSuspend = true
        full.traffic = true
        full.policy.wakesOnTraffic = true
        full.policy.wakeThreshold = AppPolicy.WakeThreshold(bytes: 64, time: .seconds(30))
        full.policy.idleTime = .seconds(2)
        full.policy.requestTime = .seconds(3)
        full.policy.pulseTime = .seconds(4)
        full.policy.keepsTimers = false
        full.policy.idleProcessorShare = 5
        full.policy.backgroundCPU = .throttle
        full.policy.backgroundCPULimit = 900
        full.policy.backgroundCPUTime = .seconds(90)
        full.keepAwake = [.timers, .connections]
        full.policy.keepAwake = [.timers, .connections]
        setMemory(of: &full)
        return full
    }
}

@Suite("File selection")
struct AppFilesTests {
    private func selected(_ vendor: FolderListing, _ config: FolderListing) -> [String] {
        let files = AppFiles(vendor: vendor, config: config)
        return vendor.apps.union(config.apps).sorted().flatMap { id in files.files(of: id).map { ["\(id)"] + $0 } ?? []
        }
    }

    @Test("an app ID has 1 to 128 letters, digits, underscores, dots and hyphens and does not start with a dot")
    func identifiers() {
        for name in ["a", "org.example.Photos", "_", "-", "a..b", "A-9_z.", String(repeating: "a", count: 128)] {
            #expect(AppID(name)?.name == name)
        }
        for name in ["", ".a", "a b", "a/b", "ä", "a\0", "a\n", "..", String(repeating: "a", count: 129), "a\u{301}"] {
            #expect(AppID(name) == nil, "\(name)")
        }
    }

    @Test("files that are not named ID.app are ignored")
    func names() {
        let vendor = FolderListing(
            path: "/v",
            apps: ["b.app", "a.app", "a.app.d", ".app", ".x.app", "a b.app", "notes.txt", "B.app", "c.APP", "app"])
        #expect(
            selected(vendor, FolderListing(path: "/c")) == [
                "B", "/v/apps/B.app", "a", "/v/apps/a.app", "b", "/v/apps/b.app",
            ])
    }

    @Test("a manifest in the configuration directory overrides the vendor's and needs none")
    func configWins() {
        let vendor = FolderListing(path: "/v", apps: ["a.app", "b.app"])
        let config = FolderListing(path: "/c", apps: ["a.app", "c.app"])
        #expect(
            selected(vendor, config) == ["a", "/c/apps/a.app", "b", "/v/apps/b.app", "c", "/c/apps/c.app"])
    }

    @Test("drop-ins of both directories are sorted by name, and the configuration directory overrides the same name")
    func dropIns() {
        let vendor = FolderListing(
            path: "/v", apps: ["a.app"],
            dropIns: ["a.app.d": ["20-b.conf", "10-a.conf", "Z.conf", "x.txt", ".h.conf", ".conf"]])
        let config = FolderListing(
            path: "/c", dropIns: ["a.app.d": ["20-b.conf", "15.conf"], "b.app.d": ["1.conf"], "a.d": ["2.conf"]])
        #expect(
            selected(vendor, config) == [
                "a", "/v/apps/a.app", "/v/apps/a.app.d/10-a.conf", "/c/apps/a.app.d/15.conf",
                "/c/apps/a.app.d/20-b.conf",
                "/v/apps/a.app.d/Z.conf",
            ])
    }

    @Test("canonically equivalent names with different bytes are different files")
    func accents() {
        let vendor = FolderListing(path: "/v", apps: ["a.app"], dropIns: ["a.app.d": ["\u{e4}.conf", "a\u{308}.conf"]])
        // The app, its manifest and two drop-ins.
        #expect(selected(vendor, FolderListing(path: "/c")).count == 4)
    }

    @Test("an empty file or a link to /dev/null in the configuration directory masks the vendor's file")
    func masked() {
        let vendor = FolderListing(path: "/v", apps: ["a.app", "b.app"], dropIns: ["b.app.d": ["1.conf", "2.conf"]])
        let config = FolderListing(
            path: "/c", apps: ["a.app"], dropIns: ["b.app.d": ["1.conf"]],
            masked: ["/c/apps/a.app", "/c/apps/b.app.d/1.conf"])
        #expect(selected(vendor, config) == ["b", "/v/apps/b.app", "/v/apps/b.app.d/2.conf"])
    }

    @Test("a masked file in the vendor directory does not mask files of the configuration directory")
    func maskedVendor() {
        let vendor = FolderListing(path: "/v", apps: ["a.app"], masked: ["/v/apps/a.app"])
        let config = FolderListing(path: "/c", apps: ["a.app"])
        #expect(selected(vendor, config) == ["a", "/c/apps/a.app"])
        #expect(selected(vendor, FolderListing(path: "/c")) == [])
    }

    @Test("greenroom.conf is selected from one directory and its drop-ins from both")
    func configuration() {
        let vendor = FolderListing(path: "/v", hasConfiguration: true, configurationDropIns: ["1.conf", "2.conf"])
        let config = FolderListing(path: "/c", hasConfiguration: true, configurationDropIns: ["2.conf", "0.conf", "x"])
        let folder = "greenroom.conf.d"
        let both = ["/c/\(folder)/0.conf", "/v/\(folder)/1.conf", "/c/\(folder)/2.conf"]
        #expect(AppFiles(vendor: vendor, config: config).configuration == ["/c/greenroom.conf"] + both)
        let alone = AppFiles(vendor: vendor, config: FolderListing(path: "/c"))
        #expect(alone.configuration == ["/v/greenroom.conf", "/v/\(folder)/1.conf", "/v/\(folder)/2.conf"])
        var masking = config
        masking.masked = ["/c/greenroom.conf"]
        #expect(AppFiles(vendor: vendor, config: masking).configuration == both)
        #expect(AppFiles(vendor: FolderListing(path: "/v"), config: FolderListing(path: "/c")).configuration == [])
    }

    @Test("at most one drop-in more than the parser accepts is selected")
    func tooMany() throws {
        let names = (0..<1000).map { "\($0).conf" }
        let vendor = FolderListing(
            path: "/v", apps: ["a.app"], dropIns: ["a.app.d": names], configurationDropIns: names)
        let files = AppFiles(vendor: vendor, config: FolderListing(path: "/c"))
        #expect(files.files(of: try #require(AppID("a")))?.count == maximumSources + 1)
        #expect(files.configuration.count == maximumSources)
    }
}
