import JSON
import Testing

@Suite("Requests that arrive slowly", .enabled(if: TrafficStage.hasPython, "needs python3"))
struct SlowRequestTests {
    /// Reads, and does not answer.
    private static let silent = """
        def serve(connection):
            while connection.recv(65536):
                pass
        run()
        """

    @Test(
        "an upload keeps a server awake, and a client that sends single bytes does so for no more than RequestSec= (L51)"
    )
    func trickle() throws {
        // The bytes themselves do not wake it, and their processor time does not count.
        let settings = "RequestSec=2s\nKeepAwake=requests\n[Wake]\nWakeThreshold=1K"
        let stage = try TrafficStage(["server": Self.silent], settings)
        let client = try TrafficClient(port: try stage.launch())
        let piece = [UInt8](repeating: 7, count: 4096)
        try stage.daemon.eventually("an upload is a request") {
            try client.send(piece)
            let awake = try stage.daemon.status("server")["awake"]?.arrayValue
            return awake?.first?["reason"]?.stringValue == "request"
        }
        var polls = 0
        try stage.daemon.eventually("it is suspended while bytes arrive") {
            polls += 1
            if polls % 20 == 0 { try client.send([7]) }
            return try stage.daemon.status("server")["state"]?.stringValue == "suspended"
        }
        // Enough bytes wake it.
        try client.send(piece)
        try stage.daemon.eventually("the upload continues") {
            try stage.daemon.status("server")["state"]?.stringValue == "background"
        }
    }
}
