import LifecycleCore
import Testing

@testable import Manifest

@Suite("Specifiers and templates")
struct SpecifierTests {
    private func expanded(_ text: String, as name: String = "worker@a-b") throws -> String {
        let id = try #require(AppID(name), "\(name)")
        return try Specifiers(id: id, values: machineValues).expanded(text)
    }

    private func problem(_ text: String, as name: String = "worker@a-b", _ values: SpecifierValues = machineValues)
        throws -> String?
    {
        let id = try #require(AppID(name), "\(name)")
        do throws(ValueError) {
            _ = try Specifiers(id: id, values: values).expanded(text)
            return nil
        } catch {
            return error.problem
        }
    }

    /// The values are those of systemd 252 for units of the same name (`systemd-analyze verify`).
    @Test(
        "specifiers of the ID are those of systemd",
        arguments: [
            ("s@a-b", "a-b a/b s s s@a-b.app s@a-b s s /a/b"),
            (
                "s@foo\\x2dbar-baz",
                "foo\\x2dbar-baz foo-bar/baz s s s@foo\\x2dbar-baz.app s@foo\\x2dbar-baz s s /foo-bar/baz"
            ),
            ("pre-fix@7", "7 7 fix fix pre-fix@7.app pre-fix@7 pre-fix pre/fix /7"),
            ("plain-x", "  x x plain-x.app plain-x plain-x plain/x /plain/x"),
            ("s@-", "- / s s s@-.app s@- s s /"), ("s@a:b", "a:b a:b s s s@a:b.app s@a:b s s /a:b"),
        ])
    func ofID(name: String, expected: String) throws {
        #expect(try expanded("%i %I %j %J %n %N %p %P %f", as: name) == expected)
    }

    @Test("specifiers of the machine and of the daemon's user have the given values")
    func ofMachine() throws {
        #expect(try expanded("%t %S %C %E %T %V") == "/run /var/lib /var/cache /etc /tmp /var/tmp")
        #expect(try expanded("%h %u %U %g %G %s") == "/root root 0 root 0 /bin/bash")
        #expect(try expanded("%H %l %v %a") == "host.example.org host 6.1.0-28-amd64 x86-64")
        #expect(try expanded("%m%b") == "3d1219c7c4c5404aaa1f6d2a48adfda4082f65d82ee24955a36e57ff1c6d31fb")
        #expect(try expanded("100%%, %%i, %%%i") == "100%, %i, %a-b")
        let unknown = try problem("%m", SpecifierValues())
        #expect(unknown == "%m has no value on this machine")
    }

    @Test("other specifiers, and a percent sign alone, are errors that name those that are supported")
    func unsupported() throws {
        for letter in "cdeklorwxyzABDFKLMOQRWXYZ09" where !"lv".contains(letter) {
            let found = try problem("a%\(letter)")
            #expect(found?.hasPrefix("%\(letter) is no specifier that is supported (%a %b %C %E") == true, "\(letter)")
        }
        for text in ["%", "a%%%", "% i", "%\u{301}%", "%\u{e4}"] {
            #expect(try problem(text)?.hasPrefix("incomplete specifier (%a") == true, "\(text)")
        }
        #expect(try problem("%d")?.hasSuffix("%v %V), and a literal % is %%") == true)
    }

    @Test("an instance with an invalid escape is an error only where it is unescaped")
    func escapes() throws {
        for name in ["s@\\", "s@a\\x2", "s@a\\y41", "s@\\x00", "s@\\xff"] {
            #expect(try expanded("%i", as: name) == String(name.dropFirst(2)))
            #expect(
                try problem("%I", as: name)?.contains("has an invalid escape (systemd-escape(1))") == true, "\(name)")
        }
        // As in systemd, %f is a normalized path or nothing.
        for name in ["s@-x", "s@x-", "s@a--b", "s@.", "s@..", "s@\\x2e\\x2e"] {
            _ = try expanded("%I", as: name)
            #expect(try problem("%f", as: name)?.contains("is no escaped path") == true, "\(name)")
        }
        #expect(unescapedUnitName("\\xc3\\xa4") == "\u{e4}")
    }

    @Test("specifiers are replaced in every setting in which systemd replaces them, within words")
    func settings() throws {
        let manifest = try #require(
            try read(
                """
                [App]
                Name=Worker %I, 5% off
                ExecStart=/opt/%p/bin "--name=%I" %%i -p%i
                Type=forking
                PIDFile=%p-%i.pid
                User=u%i
                Group=g%i
                SupplementaryGroups=a%i b%i
                WorkingDirectory=/srv/%i
                Environment="A=%I x" B=%%
                StateDirectory=%p/%i
                CacheDirectory=%N
                RuntimeDirectory=%j%i
                [Wake]
                ListenStream=127.0.0.1:80%i
                ListenStream=%t/%p/%i.sock
                FileDescriptorName=fd%i
                SocketUser=u%i
                SocketGroup=g%i

                """, as: "my-worker@42"
            ).manifest)
        #expect(manifest.name == "Worker 42, 5% off")
        #expect(manifest.exec == ["/opt/my-worker/bin", "--name=42", "%i", "-p42"])
        #expect(manifest.pidFile == "/run/my-worker-42.pid" && manifest.user == "u42" && manifest.group == "g42")
        #expect(manifest.supplementaryGroups == ["a42", "b42"] && manifest.workingDirectory == "/srv/42")
        #expect(manifest.environment == ["A=42 x", "B=%"])
        #expect(manifest.stateDirectory == ["my-worker/42"] && manifest.cacheDirectory == ["my-worker@42"])
        #expect(manifest.runtimeDirectory == ["worker42"])
        #expect(manifest.sockets.all.map(\.address) == [.ipv4("127.0.0.1", 8042), .path("/run/my-worker/42.sock")])
        #expect(manifest.sockets.name == "fd42" && manifest.sockets.user == "u42" && manifest.sockets.group == "g42")
    }

    @Test("what an instance brings in is checked as if it was written in the file, and is never split or interpreted")
    func checkedAfterwards() throws {
        func lines(_ setting: String, as name: String) throws -> [String] {
            try read("[App]\nExecStart=/bin/a\n[App]\n\(setting)\n", as: name).lines
        }
        let parent = "w@..-..-etc"
        #expect(
            try lines("StateDirectory=data/%I", as: parent).first?.contains(
                "4:16: error: StateDirectory=: invalid value 'data/../../etc'") == true)
        #expect(try lines("WorkingDirectory=/srv/%I", as: parent).count == 1)
        #expect(try lines("PIDFile=/run/%I", as: parent).count == 1)
        #expect(try lines("User=%I", as: "w@a-b").count == 1)
        #expect(try lines("Environment=%I", as: "w@novalue").count == 1)
        #expect(try lines("[Wake]\nListenStream=/run/%I", as: parent).first?.contains("contains '..'") == true)
        #expect(try lines("[Wake]\nListenStream=/run/%I", as: "w@a\\x0ab").first?.contains("control character") == true)
        #expect(
            try lines("[Wake]\nListenStream=%i", as: "w@web").first?.contains("invalid value '%i'; expected a port")
                == true)
        let command = try #require(
            try read("[App]\nExecStart=/bin/a %I\n", as: "w@\\x24HOME\\x20\\x3b\\x20\\x22\\x25i").manifest)
        #expect(command.exec == ["/bin/a", "$HOME ; \"%i"])
        let relative = try read("[App]\nExecStart=%I\n", as: "w@bin").lines
        #expect(relative.first?.contains("'bin' is not an absolute path") == true)
    }

    @Test("a text that grows beyond the longest argument is an error")
    func growth() throws {
        let long = String(repeating: "%n", count: 2000)
        let name = "w@" + String(repeating: "a", count: 126)
        #expect(try problem(long, as: name)?.contains("too long after its specifiers are replaced") == true)
        let words = String(repeating: " " + String(repeating: "%n", count: 900), count: 11)
        let lines = try read("[App]\nExecStart=/bin/a\(words)\n", as: name).lines
        #expect(lines.count == 1 && lines[0].contains("arguments of more than 1048576 bytes"), "\(lines)")
    }
}

@Suite("Files of templates and instances")
struct TemplateFileTests {
    private func files(_ name: String, _ vendor: FolderListing, _ config: FolderListing) throws -> [String]? {
        AppFiles(vendor: vendor, config: config).files(of: try #require(AppID(name)))
    }

    private let empty = FolderListing(path: "/c")

    @Test("names of templates are an ID and an @; instances and templates are distinguished")
    func names() {
        for name in ["w@", "org.example.w@", "-@", String(repeating: "a", count: 128) + "@"] {
            #expect(templateName(name) == String(name.dropLast()))
        }
        for name in ["w", "@", "w@1", "w@1@", ".w@", "a b@", "w@@", String(repeating: "a", count: 129) + "@", ""] {
            #expect(templateName(name) == nil, "\(name)")
        }
        var listing = FolderListing(path: "/v")
        let added = ["w@.app", "w@1.app", "w@a\\x2d:b.app", "w.app"].filter { listing.addManifest(file: $0) }
        #expect(added.count == 4)
        let refused = ["@.app", "w@1@2.app", "w@a b.app", "w@.app.d", "w@"].filter { listing.addManifest(file: $0) }
        #expect(refused == [])
        #expect(listing.templates == ["w"])
        #expect(listing.apps.map(\.name).sorted() == ["w", "w@1", "w@a\\x2d:b"])
    }

    @Test("an instance without a file has its template's, and its own file wins in either directory (systemd.unit(5))")
    func instances() throws {
        let vendor = FolderListing(path: "/v", apps: ["w@.app", "w@1.app"])
        let config = FolderListing(path: "/c", apps: ["w@.app", "w@2.app"])
        #expect(try files("w@1", vendor, config) == ["/v/apps/w@1.app"])
        #expect(try files("w@2", vendor, config) == ["/c/apps/w@2.app"])
        #expect(try files("w@3", vendor, config) == ["/c/apps/w@.app"])
        #expect(try files("w@3", vendor, empty) == ["/v/apps/w@.app"])
        #expect(try files("w", vendor, config) == nil)
        #expect(try files("x@1", vendor, config) == nil)
        let both = AppFiles(vendor: vendor, config: config)
        #expect(both.templates == ["w"])
        #expect(both.files(ofTemplate: "w") == ["/c/apps/w@.app"])
        #expect(both.files(ofTemplate: "x") == nil)
    }

    @Test("a masked template has no instances except those with a file, and a masked instance does not exist")
    func masked() throws {
        let vendor = FolderListing(path: "/v", apps: ["w@.app"])
        let config = FolderListing(
            path: "/c", apps: ["w@.app", "w@1.app", "w@2.app"], masked: ["/c/apps/w@.app", "/c/apps/w@2.app"])
        #expect(try files("w@1", vendor, config) == ["/c/apps/w@1.app"])
        #expect(try files("w@2", vendor, config) == nil)
        #expect(try files("w@3", vendor, config) == nil)
        #expect(AppFiles(vendor: vendor, config: config).templates == [])
        let instance = FolderListing(path: "/c", apps: ["w@2.app"], masked: ["/c/apps/w@2.app"])
        #expect(try files("w@2", vendor, instance) == nil)
        #expect(try files("w@3", vendor, instance) == ["/v/apps/w@.app"])
    }

    /// The order is that of systemd 252 (`DropIn Path:` of systemd-analyze verify with debug output).
    @Test("drop-ins of template and instance are sorted by name over all directories, and the more specific one wins")
    func dropIns() throws {
        let config = FolderListing(
            path: "/c", apps: ["w@.app"], dropIns: ["w@.app.d": ["a.conf", "b.conf"], "w@1.app.d": ["a.conf"]])
        let vendor = FolderListing(
            path: "/v",
            dropIns: ["w@.app.d": ["c.conf", "d.conf"], "w@1.app.d": ["b.conf", "c.conf"], "w@2.app.d": ["0.conf"]])
        #expect(
            try files("w@1", vendor, config) == [
                "/c/apps/w@.app", "/c/apps/w@1.app.d/a.conf", "/c/apps/w@.app.d/b.conf", "/v/apps/w@1.app.d/c.conf",
                "/v/apps/w@.app.d/d.conf",
            ])
        #expect(
            try files("w@2", vendor, config) == [
                "/c/apps/w@.app", "/v/apps/w@2.app.d/0.conf", "/c/apps/w@.app.d/a.conf", "/c/apps/w@.app.d/b.conf",
                "/v/apps/w@.app.d/c.conf", "/v/apps/w@.app.d/d.conf",
            ])
        #expect(
            AppFiles(vendor: vendor, config: config).files(ofTemplate: "w")?.dropFirst() == [
                "/c/apps/w@.app.d/a.conf", "/c/apps/w@.app.d/b.conf", "/v/apps/w@.app.d/c.conf",
                "/v/apps/w@.app.d/d.conf",
            ])
        let masking = FolderListing(
            path: "/c", apps: ["w@1.app", "w@.app"], dropIns: ["w@.app.d": ["a.conf"], "w@1.app.d": ["a.conf"]],
            masked: ["/c/apps/w@1.app.d/a.conf"])
        #expect(try files("w@1", empty, masking) == ["/c/apps/w@1.app"])
        #expect(try files("w@2", empty, masking) == ["/c/apps/w@.app", "/c/apps/w@.app.d/a.conf"])
    }
}
