import Testing
import greenroomctl

@Suite("Arguments")
struct InvocationTests {
    @Test("options stand before or behind the verb, with or without an equals sign")
    func options() {
        for line in [
            ["--json", "--runtime", "/r", "launch", "photos", "--background"],
            ["launch", "--background", "photos", "--runtime=/r", "--json"],
        ] {
            guard case .run(let invocation) = Invocation.parse(line) else {
                Issue.record("\(line) was refused")
                continue
            }
            #expect(invocation.verb == .launch)
            #expect(invocation.operands == ["photos"])
            #expect(invocation.options == [.json: "", .runtime: "/r", .background: ""])
        }
    }

    @Test("two hyphens end the options, a single one is a word")
    func endOfOptions() {
        guard case .run(let invocation) = Invocation.parse(["send", "photos", "x-a", "--", "--json"]) else {
            Issue.record("refused")
            return
        }
        #expect(invocation.operands == ["photos", "x-a", "--json"])
        #expect(invocation.options.isEmpty)
        guard case .run(let push) = Invocation.parse(["push", "photos", "-"]) else {
            Issue.record("refused")
            return
        }
        #expect(push.operands == ["photos", "-"])
    }

    @Test("letters may be joined, and carry their value")
    func letters() {
        for line in [["receipts", "-n5"], ["receipts", "-n", "5"], ["receipts", "--lines=5"]] {
            guard case .run(let invocation) = Invocation.parse(line) else {
                Issue.record("\(line) was refused")
                continue
            }
            #expect(invocation.options == [.lines: "5"])
        }
    }

    @Test(
        "wrong usage is told in a sentence",
        arguments: [
            ([], "a verb is missing"),
            (["--json"], "a verb is missing"),
            (["lsit"], "unknown verb “lsit”; did you mean list?"),
            (["frobnicate"], "unknown verb “frobnicate”"),
            (["a\u{1B}[2Jb"], "unknown verb “a\\x1b[2Jb”"),
            (["list", "--jsno"], "unknown option “--jsno”; did you mean --json?"),
            (["--frob", "list"], "unknown option “--frob”"),
            (["list", "-x"], "unknown option “-x”"),
            (["list", "--json=1"], "--json takes no value"),
            (["list", "--runtime"], "--runtime needs a value: a folder"),
            (["list", "--runtime="], "--runtime needs a value: a folder"),
            (["list", "photos"], "“photos” is one word too many for list"),
            (["--user", "--system", "list"], "--user and --system exclude each other"),
            (["launch"], "launch needs an app"),
            (["launch", "a", "b"], "“b” is one word too many for launch"),
            (["activate", "a", "--background"], "--background goes with launch, not with activate"),
            (["launch", "a", "--remove"], "--remove goes with terminate, not with launch"),
            (
                ["launch", "a", "--reason", "whim"],
                "--reason: “whim” is no reason to launch; expected one of user, url, push,"
            ),
            (["send", "a"], "send needs the kind of notification"),
            (["receipt"], "receipt needs the ID of a receipt"),
            (["receipt", "photos"], "“photos” is no receipt's ID: those are numbers"),
            (["receipts", "-n", "x"], "--lines: “x” is no number"),
            (
                ["pressure", "critcal"],
                "“critcal” is no memory level; did you mean critical?; expected normal, warning, critical"
            ),
            (["verify"], "verify needs a file"),
            (["help", "lunch"], "unknown verb “lunch”; did you mean launch?"),
        ] as [([String], String)])
    func wrongUsage(line: [String], expected: String) {
        guard case .wrong(let sentence) = Invocation.parse(line) else {
            Issue.record("\(line) was taken")
            return
        }
        #expect(sentence.hasPrefix(expected), "\(sentence)")
    }

    @Test("help is shown for all, and for each verb", arguments: Verb.allCases)
    func help(verb: Verb) {
        guard case .show(let one) = Invocation.parse([verb.rawValue, "--help"]),
            case .show(let same) = Invocation.parse(["help", verb.rawValue]),
            case .show(let all) = Invocation.parse(["-h"])
        else {
            Issue.record("no help for \(verb)")
            return
        }
        #expect(one == same)
        #expect(one.hasPrefix("Usage: greenroomctl \(verb.rawValue)"))
        let isThere = ![.open, .snapshot].contains(verb)
        #expect(all.contains("\n  \(verb.rawValue) ") == isThere)
        for line in (one + all).split(separator: "\n") { #expect(line.count <= 120, "\(line)") }
    }

    @Test("verbs that are not there yet are taken with any options: the answer is about the verb")
    func notThereYet() {
        guard case .run(let invocation) = Invocation.parse(["snapshot", "photos", "-f", "--since", "today"]) else {
            Issue.record("refused")
            return
        }
        #expect(invocation.verb == .snapshot)
    }
}

@Suite("Which daemon")
struct EndpointTests {
    private func endpoint(_ line: [String], root: Bool = false, _ variables: [String: String] = [:]) throws -> Endpoint
    {
        guard case .run(let invocation) = Invocation.parse(line) else { throw Failure("refused") }
        return try Endpoint(invocation, Environment(isRoot: root) { variables[$0] })
    }

    @Test("the system's for root, one's own for others, and the one that is named for everybody")
    func runtime() throws {
        let home = ["HOME": "/home/ada"]
        let session = ["HOME": "/home/ada", "XDG_RUNTIME_DIR": "/run/user/7"]
        #expect(try endpoint(["list"], root: true, home).socket == "/run/greenroom/bus")
        #expect(try endpoint(["list", "--system"], home).socket == "/run/greenroom/bus")
        #expect(try endpoint(["list"], session).socket == "/run/user/7/greenroom/bus")
        #expect(try endpoint(["list"], home).socket == "/home/ada/.cache/greenroom/bus")
        #expect(try endpoint(["list", "--user"], root: true, home).socket == "/home/ada/.cache/greenroom/bus")
        #expect(try endpoint(["list", "--runtime", "/r/"], root: true, home).socket == "/r/bus")
        #expect(try endpoint(["list"], ["HOME": "relative", "XDG_RUNTIME_DIR": "/x"]).socket == "/x/greenroom/bus")
    }

    @Test("without any folder for the user there is a sentence")
    func noHome() {
        #expect(throws: Failure("neither XDG_RUNTIME_DIR nor HOME is set: say --runtime DIR or --system")) {
            try endpoint(["list"], ["HOME": "relative"])
        }
    }
}
