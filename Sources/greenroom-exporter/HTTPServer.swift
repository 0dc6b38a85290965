import CMicrohttpd
import Glibc
import Linux
import LoopPolicy
import Metrics
import Posix
import Systemd

/// A request whose answer waits for the daemon.
struct WaitingRequest {
    fileprivate let connection: OpaquePointer
    fileprivate let server: HTTPServer
}

/// Serves HTTP on one listening socket, with libmicrohttpd, in the loop of the program: it has no thread.
final class HTTPServer {
    let listener: ListeningSocket
    private let loop: EventLoop
    private var daemon: OpaquePointer?
    private var source: EventSource?
    private var timer: Timer?
    /// The answer to a request for metrics; `nil`: it is not known yet, and the request was stored.
    private let answer: (WaitingRequest, ExpositionFormat) -> OpaquePointer?
    /// Connections that wait for the daemon: libmicrohttpd must not be stopped while there are any.
    private var suspended: Set<OpaquePointer> = []

    /// Scrapers are few. One that does not read or send holds one of these for 10s.
    private static let mostConnections: UInt32 = 64
    private static let timeoutSeconds: UInt32 = 10

    init(
        loop: EventLoop, listener: ListeningSocket,
        answer: @escaping (WaitingRequest, ExpositionFormat) -> OpaquePointer?
    ) throws {
        self.loop = loop
        self.listener = listener
        self.answer = answer
        let userdata = Unmanaged.passUnretained(self).toOpaque()
        // libmicrohttpd closes the socket that it gets.
        let socket = try listener.descriptor.descriptor.duplicate().release()
        guard
            let daemon = cmicrohttpd_start(
                socket, Self.mostConnections, Self.timeoutSeconds,
                { userdata, connection, url, method, _, _, _, state in
                    guard let userdata, let connection, let url, let method, let state else {
                        return cmicrohttpd_result(0)
                    }
                    return Unmanaged<HTTPServer>.fromOpaque(userdata).takeUnretainedValue().handle(
                        connection, String(cString: method), String(cString: url), state)
                }, nil, userdata)
        else {
            close(socket)
            throw SystemError(call: "MHD_start_daemon", errno: ENOMEM, path: listener.address.description)
        }
        self.daemon = daemon
        timer = try loop.makeTimer(kind: .controlTimer) { [weak self] _ in self?.run() }
        let descriptor = try Descriptor.duplicate(of: cmicrohttpd_epoll_descriptor(daemon))
        source = try loop.addDescriptor(SharedDescriptor(descriptor), events: .readable, kind: .controlClient) {
            [weak self] _ in
            self?.run()
            return .progress
        }
    }

    /// Ends all connections.
    func stop() {
        source = nil
        timer?.cancel()
        for connection in suspended { MHD_resume_connection(connection) }
        suspended = []
        if let daemon { MHD_stop_daemon(daemon) }
        daemon = nil
        listener.removeFile()
    }

    /// Does what is due on all connections.
    private func run() {
        guard let daemon else { return }
        var before: UInt32
        repeat {
            before = cmicrohttpd_connections(daemon)
            MHD_run(daemon)
            // A run that closes connections does not accept those that waited for that: the next one does.
        } while cmicrohttpd_connections(daemon) < before
        let milliseconds = cmicrohttpd_timeout(daemon)
        timer?.arm(at: milliseconds >= 0 ? loop.now() + .milliseconds(milliseconds) : nil)
    }

    // MARK: Requests

    /// Called by libmicrohttpd at the header of a request, again after its body, and again after it was resumed.
    private func handle(
        _ connection: OpaquePointer, _ method: String, _ url: String,
        _ state: UnsafeMutablePointer<UnsafeMutableRawPointer?>
    ) -> MHD_Result {
        guard method == "GET" || method == "HEAD" else {
            return send(connection, 405, "Only GET and HEAD are possible here.\n", ("Allow", "GET, HEAD"))
        }
        guard url == "/metrics" else {
            return send(connection, 404, "The metrics are at /metrics.\n")
        }
        // The header alone: an answer now would end the connection, which scrapers use again.
        if state.pointee == nil {
            state.pointee = UnsafeMutableRawPointer(bitPattern: 1)
            return cmicrohttpd_result(1)
        }
        let accept = cmicrohttpd_header(connection, "Accept").map { String(cString: $0) }
        let request = WaitingRequest(connection: connection, server: self)
        if let response = answer(request, ExpositionFormat(accept: accept)) {
            return MHD_queue_response(connection, 200, response)
        }
        suspended.insert(connection)
        MHD_suspend_connection(connection)
        return cmicrohttpd_result(1)
    }

    private func send(
        _ connection: OpaquePointer, _ status: UInt32, _ text: String, _ header: (String, String)? = nil
    ) -> MHD_Result {
        guard let response = Self.response(Array(text.utf8), type: "text/plain; charset=utf-8") else {
            return cmicrohttpd_result(0)
        }
        defer { MHD_destroy_response(response) }
        if let header { MHD_add_response_header(response, header.0, header.1) }
        return MHD_queue_response(connection, status, response)
    }

    /// Makes an answer of these bytes. Many connections can send the same one.
    static func response(_ bytes: [UInt8], type: String) -> OpaquePointer? {
        guard let response = bytes.withUnsafeBytes({ cmicrohttpd_response($0.baseAddress, $0.count) }) else {
            return nil
        }
        MHD_add_response_header(response, "Content-Type", type)
        MHD_add_response_header(response, "Vary", "Accept")
        return response
    }

    /// The answer is known now: these requests ask for it again.
    static func resume(_ requests: [WaitingRequest]) {
        for request in requests where request.server.suspended.remove(request.connection) != nil {
            MHD_resume_connection(request.connection)
            request.server.timer?.arm(at: request.server.loop.now())
        }
    }
}
