import CMicrohttpd
import Control
import Glibc
import Linux
import LoopPolicy
import Metrics
import Posix
import Systemd

/// Counts the events of the daemon, and answers scrapes. The daemon is asked once for all scrapers, and for at most a tenth of the time.
final class Exporter {
    private let loop: EventLoop
    private let link: DaemonLink
    private let options: Options
    private var metrics = LifecycleMetrics()
    private var servers: [HTTPServer] = []
    /// The server of `MetricsListen=`.
    private var configured: HTTPServer?
    private var listen = Options.Listen.off
    /// Tries the address of `MetricsListen=` again.
    private var retryTimer: Timer?
    private var retryDelay = shortestRetry
    private var signals: [EventSource] = []
    private var waiting: [WaitingRequest] = []
    /// The answers of the last questions to the daemon.
    private var snapshot: Snapshot?
    /// Until when they are sent to further scrapers.
    private var validUntil: Duration?
    /// The answers as texts, which scrapers share.
    private var responses: [ExpositionFormat: OpaquePointer] = [:]

    private static let shortestRetry = Duration.milliseconds(500)
    private static let longestRetry = Duration.seconds(30)
    /// How long an answer is valid: so long, or ten times as long as the daemon took for it, so that it works for scrapers for at most a
    /// tenth of its time.
    private static let shortestValidity = Duration.seconds(1)
    private static let longestValidity = Duration.seconds(30)

    init(_ options: Options) throws {
        self.options = options
        loop = try EventLoop()
        link = try DaemonLink(loop: loop, socket: options.runtime + "/bus")
        retryTimer = try loop.makeTimer(kind: .timer) { [unowned self] _ in serveConfigured(isRetry: true) }
    }

    /// Serves until SIGTERM or SIGINT.
    /// - Returns: the exit status.
    func run() throws -> Int32 {
        for number in [SIGTERM, SIGINT] {
            signals.append(try loop.addSignal(number, kind: .stopSignal) { [unowned self] _ in loop.exit(0) })
        }
        servers.append(try serve(.path(options.socket)))
        if case .at(let address)? = options.listen { servers.append(try serve(address)) }
        link.onEvent = { [unowned self] in metrics.count($0, now: Self.now) }
        link.onGap = { [unowned self] in metrics.countGap() }
        link.onMetricsListen = { [unowned self] in configure($0) }
        // Events are counted from now on.
        link.onFirstAttempt = { _ = try? ServiceManager.notify(.ready) }
        link.connect()
        let result = try loop.run()
        HTTPServer.resume(waiting)
        for server in servers + (configured.map { [$0] } ?? []) { server.stop() }
        clearResponses()
        return result
    }

    private static var now: UInt64 { UInt64(max(0, EventLoop.now() / .microseconds(1))) }

    private func serve(_ address: ListenAddress) throws -> HTTPServer {
        var settings = ListeningSocket.Settings()
        // Every user may read the same from the daemon (`List`).
        settings.mode = 0o666
        settings.backlog = 128
        let listener: ListeningSocket
        do throws(SystemError) {
            listener = try ListeningSocket(.stream, address, settings)
        } catch {
            throw ListenFailure(address: address, error: error)
        }
        return try HTTPServer(loop: loop, listener: listener) { [unowned self] in answer($0, $1) }
    }

    /// Serves at the address of `MetricsListen=` instead of the one before.
    private func configure(_ text: String) {
        guard options.listen == nil, let wanted = Options.Listen(text), wanted != listen else { return }
        configured?.stop()
        configured = nil
        listen = wanted
        retryTimer?.arm(at: nil)
        retryDelay = Self.shortestRetry
        serveConfigured(isRetry: false)
    }

    /// While the address cannot be used, the other sockets serve and it is tried again: the program that has the port may end.
    private func serveConfigured(isRetry: Bool) {
        guard case .at(let address) = listen else { return }
        do {
            configured = try serve(address)
            if isRetry { printError("MetricsListen=: listening at \(address)") }
        } catch {
            if !isRetry { printError("MetricsListen=: \(error); retrying, and serving \(options.socket) meanwhile") }
            retryTimer?.arm(at: loop.now() + retryDelay)
            retryDelay = min(retryDelay * 2, Self.longestRetry)
        }
    }

    // MARK: Scrapes

    /// - Returns: `nil` if the daemon has to be asked first.
    private func answer(_ request: WaitingRequest, _ format: ExpositionFormat) -> OpaquePointer? {
        if let validUntil, loop.now() < validUntil { return response(format) }
        waiting.append(request)
        // The first of those that wait asks, after the connection is suspended: the answer may be known at once.
        if waiting.count == 1 {
            loop.callLater { [weak self] in
                self?.link.ask { self?.take($0) }
            }
        }
        return nil
    }

    private func take(_ answer: Snapshot?) {
        snapshot = answer
        if let answer { metrics.update(answer, now: Self.now) }
        let validity = max(Self.shortestValidity, (answer?.queryTime ?? .zero) * 10)
        validUntil = loop.now() + min(validity, Self.longestValidity)
        clearResponses()
        let requests = waiting
        waiting = []
        HTTPServer.resume(requests)
    }

    private func response(_ format: ExpositionFormat) -> OpaquePointer? {
        if let known = responses[format] { return known }
        let made = HTTPServer.response(
            metrics.exposition(format, snapshot, now: Self.now), type: format.contentType)
        responses[format] = made
        return made
    }

    /// Connections that still send one keep it.
    private func clearResponses() {
        for response in responses.values { MHD_destroy_response(response) }
        responses = [:]
    }
}

/// Why metrics cannot be served at an address.
private struct ListenFailure: Error, CustomStringConvertible {
    let address: ListenAddress
    let error: SystemError

    var description: String { "cannot listen at \(address): \(SystemError.text(of: error.errno))" }
}
