import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

@Suite("Interruptions and their clients")
struct ClientInterruptionTests {
    @Test("an interruption outlives the connection of its client, and ends with it on request (L13)")
    func disconnects() throws {
        let daemon = try TestDaemon(["call": TestDaemon.manifest("")])
        try daemon.launch("call")
        func interrupt(_ member: String) throws {
            let client = try BusConnection(path: daemon.runtime + "/bus")
            let answer = try client.call(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member,
                [.string("call")])
            #expect(JSONValue(answer[0])["state"]?.stringValue == "inactive")
        }
        try interrupt("InterruptWhileConnected")
        try daemon.eventually("the interruption has ended") { try daemon.state("call") == "active" }
        // The end of the second connection is served after that of the first one.
        try interrupt("Interrupt")
        try interrupt("InterruptWhileConnected")
        try daemon.eventually("the second interruption has ended") {
            try daemon.status("call")["interruptions"]?.integerValue == 1
        }
        #expect(try daemon.state("call") == "inactive")
        #expect(try daemon.ask("Resume", "call")["state"]?.stringValue == "active")
    }

    @Test("greenroomctl interrupt --while-connected ends the interruption with the program (L13)")
    func command() throws {
        let daemon = try TestDaemon(["call": TestDaemon.manifest("")])
        try daemon.launch("call")
        let output = SharedDescriptor(try Descriptor.open(daemon.root + "/output", O_WRONLY | O_CREAT, mode: 0o600))
        let request = SpawnRequest(
            executable: TestDaemon.binaries + "/greenroomctl",
            arguments: ["--runtime", daemon.runtime, "interrupt", "call", "--while-connected"],
            environment: ["PATH=/usr/bin:/bin"], standardOutput: output, standardError: output)
        var starting = try startProcess(request)
        let process = starting.process
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        try daemon.eventually("it is answered") {
            TestDaemon.text(of: daemon.root + "/output").contains("call: inactive")
        }
        try process.signal(SIGINT)
        try daemon.waitForEvent("its end") { $0["reason"]?.stringValue == "interruptionEnded" }
        #expect(try daemon.status("call")["interruptions"]?.integerValue == 0)
        waitForReadable([process.descriptor])
        _ = try process.reap()
    }

    @Test("a client that connects while events are signalled gets the answer to its Hello first")
    func hello() throws {
        let daemon = try TestDaemon(["call": TestDaemon.manifest("")])
        let socket = try UnixSocket.connect(to: daemon.runtime + "/bus")
        try send("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n".utf8.map { $0 }, to: socket)
        // "DATA", then "OK" and the ID of the server: from then on the connection could take signals.
        var line: [UInt8] = []
        while !line.suffix(2).elementsEqual([13, 10]) || !line.starts(with: Array("DATA\r\nOK ".utf8)) {
            line += try receive(1, from: socket)
        }
        try daemon.launch("call")
        try daemon.wait("call", "stateChanged", state: "active")
        try send(Self.hello, to: socket)
        // The second byte of a message is its type: 2 is an answer, 4 a signal (D-Bus specification, "Message Format").
        #expect(try receive(2, from: socket) == [UInt8(ascii: "l"), 2])
    }

    /// A call of org.freedesktop.DBus.Hello, little endian, with the serial 1.
    private static let hello: [UInt8] = {
        func field(_ code: UInt8, _ signature: String, _ text: String) -> [UInt8] {
            var bytes: [UInt8] = [
                code, 1, UInt8(ascii: Unicode.Scalar(signature)!), 0, UInt8(text.utf8.count), 0, 0, 0,
            ]
            bytes += Array(text.utf8) + [0]
            while bytes.count % 8 != 0 { bytes.append(0) }
            return bytes
        }
        var fields = field(1, "o", "/org/freedesktop/DBus") + field(2, "s", "org.freedesktop.DBus")
        fields += field(3, "s", "Hello") + field(6, "s", "org.freedesktop.DBus")
        // Without the padding after the last field.
        let length = fields.count - (8 - (8 + "org.freedesktop.DBus".utf8.count + 1) % 8) % 8
        return [UInt8(ascii: "l"), 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, UInt8(length), 0, 0, 0] + fields
    }()

    private func send(_ bytes: [UInt8], to socket: borrowing Descriptor) throws {
        try #require(Glibc.send(socket.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    private func receive(_ count: Int, from socket: borrowing Descriptor) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        try #require(recv(socket.raw, &bytes, count, Int32(MSG_WAITALL)) == count)
        return bytes
    }
}
