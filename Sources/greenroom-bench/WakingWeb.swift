import Control
import Glibc
import Linux
import Posix
import Systemd

/// Sends random requests to many idle web servers, `python3 -m http.server`, that greenroomd suspends, and to as many that are
/// left running.
func measureWeb(_ bench: Bench) throws {
    raiseDescriptorLimit()
    let count = bench.hasFewApps ? 30 : 300
    let seconds = bench.isQuick ? 10 : bench.minutes * 60
    bench.report.section(
        "\(count) web servers, \(seconds) s",
        "python3 -m http.server; each request goes to a random server of greenroomd and to one that is left running")
    guard access(Web.python, X_OK) == 0 else {
        let peer = "\(Web.python) is not installed"
        return bench.report.add(Figure(name: "requests", unit: .count, ours: nil, peer: peer, remark: "–"))
    }
    let web = try Web(bench, count)
    defer { web.stop() }
    try web.run(seconds: seconds)
    try web.addFigures()
}

/// What was measured of the servers of one owner.
private struct WebResults {
    var requests = 0
    var answers = Samples()
    var lost = 0
    /// At the start, in seconds.
    var processorTime = 0.0
}

private final class Web {
    static let python = "/usr/bin/python3"
    private let bench: Bench
    private let count: Int
    private let greenroom: Greenroom
    private let ports: [UInt16]
    private let page: [UInt8]
    private var running: [Server] = []
    private var pids: [Int32] = []
    private var ours = WebResults()
    private var theirs = WebResults()
    /// How often an app was woken.
    private var wakes = 0

    init(_ bench: Bench, _ count: Int) throws {
        self.bench = bench
        self.count = count
        let folder = bench.folder + "/pages"
        try createDirectories(at: folder)
        var numbers = SeededNumbers(seed: 2)
        let page = (0..<4096).map { _ in UInt8.random(in: 0x20...0x7e, using: &numbers) }
        self.page = page
        try replaceFile(at: folder + "/page.txt", with: page)
        let ports = try freePorts(2 * count)
        self.ports = ports
        func command(_ number: Int) -> [String] {
            [Self.python, "-m", "http.server", "\(ports[number])", "--bind", "127.0.0.1", "--directory", folder]
        }
        let manifests = (0..<count).map { ("web\($0)", WakingServers.manifest(command($0))) }
        for number in count..<2 * count {
            let words = command(number)
            running.append(try Server(words[0], Array(words.dropFirst()), log: bench.folder + "/web.log"))
        }
        for port in ports[count...] {
            try eventually("a web server listens", everyMicroseconds: 20_000) { try isListening(port) }
        }
        // Last: greenroomd disconnects a client that does not read its signals, and the others take half a minute to start.
        greenroom = try Greenroom(bench, "waking-web", apps: manifests)
        try greenroom.suspendAll(manifests.map(\.0))
        for (app, _) in manifests {
            let status = try AppStatus(variant: try greenroom.call("Status", [.string(app)]))
            guard let pid = status.pid else { throw BenchFailure("\(app) does not run") }
            pids.append(pid)
        }
    }

    func stop() {
        greenroom.stop()
        for server in running { server.stop() }
    }

    // MARK: Requests

    func run(seconds: Int) throws {
        var numbers = SeededNumbers(seed: 3)
        ours.processorTime = ownProcessorTime()
        theirs.processorTime = theirProcessorTime()
        let end = clockNow() + UInt64(seconds) * 1_000_000_000
        while clockNow() < end {
            try readSignals(microseconds: Int.random(in: 0..<80_000, using: &numbers))
            let (own, other) = (
                Int.random(in: 0..<count, using: &numbers), Int.random(in: count..<2 * count, using: &numbers)
            )
            if Bool.random(using: &numbers) {
                request(own, &ours)
                request(other, &theirs)
            } else {
                request(other, &theirs)
                request(own, &ours)
            }
        }
        ours.processorTime = ownProcessorTime() - ours.processorTime
        theirs.processorTime = theirProcessorTime() - theirs.processorTime
    }

    /// Reads the daemon's signals for some time, and counts wakes.
    private func readSignals(microseconds: Int) throws {
        let end = EventLoop.now() + .microseconds(microseconds)
        while let change = try greenroom.nextChange(until: end) {
            if change.state == "background" { wakes += 1 }
        }
    }

    /// Gets the page. A request without the whole page as its answer is lost.
    private func request(_ number: Int, _ results: inout WebResults) {
        results.requests += 1
        let start = clockNow()
        do {
            let connection = try ClientConnection(port: ports[number])
            try connection.send(Array("GET /page.txt HTTP/1.0\r\nHost: localhost\r\n\r\n".utf8))
            let answer = try connection.receiveAll()
            results.answers.add(from: start, to: clockNow())
            let isGood = answer.starts(with: Array("HTTP/1.0 200 ".utf8))
            if !isGood || !answer.suffix(page.count).elementsEqual(page) { results.lost += 1 }
        } catch {
            results.lost += 1
        }
    }

    // MARK: Costs

    /// The processor time of the servers and of the daemon in seconds.
    private func ownProcessorTime() -> Double {
        ([greenroom.pid] + pids).reduce(0) { $0 + processorTime(of: $1) }
    }

    private func theirProcessorTime() -> Double {
        running.reduce(0) { $0 + processorTime(of: $1.process.pid) }
    }

    private func ownMemory() throws -> Double {
        let proc = ProcFS()
        var sum = try greenroom.pss()
        for pid in pids { sum += Double(try proc.memoryRollup(of: pid)?.pss ?? 0) }
        return sum
    }

    func addFigures() throws {
        let report = bench.report
        let theirMemory = try running.reduce(0.0) { $0 + (try $1.pss()) }
        let peer = "running"
        report.add(
            Figure(
                name: "requests", unit: .count, ours: Double(ours.requests), peer: peer,
                theirs: Double(theirs.requests),
                remark: "\(wakes) wakes"))
        report.add(
            Figure(
                name: "requests lost (must be 0)", unit: .count, ours: Double(ours.lost), peer: peer,
                theirs: Double(theirs.lost), isRequired: ours.lost == 0))
        report.addDifferences("answer", ours.answers, peer, theirs.answers)
        report.add(
            Figure(
                name: "processor time, daemon included", unit: .seconds, ours: ours.processorTime, peer: peer,
                theirs: theirs.processorTime))
        report.add(
            Figure(
                name: "memory (PSS), daemon included", unit: .bytes, ours: try ownMemory(), peer: peer,
                theirs: theirMemory))
    }
}
