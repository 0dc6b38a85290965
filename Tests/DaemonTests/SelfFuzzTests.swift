import Glibc
import JSON
import Posix
import Systemd
import TestKit
import Testing

/// Bytes that are no valid D-Bus, in each stage of a connection. `GREENROOM_FUZZ_SEED=` and `GREENROOM_FUZZ_ROUNDS=` choose others.
@Suite("Connections of apps: fuzzing")
struct SelfFuzzTests {
    @Test(
        "random and damaged bytes in the authentication, in headers and in bodies end one connection, and nothing else")
    func fuzz() throws {
        let seed = number("SEED") ?? 1
        var random = Dice(UInt64(seed))
        let stage = try SelfStage()
        let client = try stage.active()
        try client.call("BeginTask", [.string("fuzz"), .string("fuzz")])
        try stage.mark()
        // The first rounds let buffers and tables grow.
        let rounds = number("ROUNDS") ?? 400
        var size = 0
        for round in 0..<rounds {
            if round == rounds / 4 { size = stage.residentKibibytes }
            do {
                try play(stage.daemon, &random)
            } catch {
                throw TestFailure("seed \(seed), round \(round): \(error)")
            }
            if round % 20 == 0 {
                try stage.ping()
                #expect(try client.call("RemainingTime") == [.uint64(.max)], "seed \(seed), round \(round)")
            }
        }
        #expect(try stage.daemon.state("mail") == "active")
        #expect(stage.residentKibibytes - size < 8 << 10, "seed \(seed): \(size) KiB became \(stage.residentKibibytes)")
        try client.call("EndTask", [.string("fuzz")])
        try stage.expectNothingLeft()
    }

    private func number(_ name: String) -> Int? {
        getenv("GREENROOM_FUZZ_\(name)").flatMap { Int(String(cString: $0)) }
    }

    /// One connection. The daemon has ended it when this returns.
    private func play(_ daemon: TestDaemon, _ random: inout Dice) throws {
        let stage = random.below(3)
        let client = try RawSelfClient(daemon, handshake: stage > 0)
        var bytes: [UInt8]
        switch stage {
        case 0:
            bytes = RawSelfClient.handshake + message(&random).bytes
            damage(&bytes, 0..<RawSelfClient.handshake.count, &random)
        case 1:
            bytes = (0...random.below(4)).flatMap { _ in message(&random).bytes }
            damage(&bytes, 0..<min(bytes.count, 16 + random.below(120)), &random)
        default:
            var call = message(&random)
            let signature = call.signature
            let length = call.body.bytes.count
            switch random.below(3) {
            case 0: call.body.bytes = (0..<random.below(600)).map { _ in UInt8(random.below(256)) }
            case 1: if length > 0 { damage(&call.body.bytes, 0..<length, &random) }
            default:
                call.signature = random.pick(["", "s", "h", "a{sv}", "aaaaaaaay", "(((((s)))))", "v", "aay", "g", "tt"])
            }
            bytes = call.bytes
            if signature == "s", random.below(2) == 0 { bytes += message(&random).bytes }
        }
        send(bytes, on: client, &random)
        try client.finish()
    }

    /// In one piece or in some. The daemon may end the connection before it has all.
    private func send(_ bytes: [UInt8], on client: RawSelfClient, _ random: inout Dice) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = client.sendSome(rest.prefix(random.below(2) == 0 ? rest.count : 1 + random.below(64)))
            if sent < 0 { return }
            rest = rest.dropFirst(sent)
        }
    }

    private func damage(_ bytes: inout [UInt8], _ range: Range<Int>, _ random: inout Dice) {
        for _ in 0...random.below(6) {
            let at = range.lowerBound + random.below(range.count)
            switch random.below(5) {
            case 0: bytes[at] = UInt8(random.below(256))
            case 1: bytes[at] ^= 1 << UInt8(random.below(8))
            case 2: bytes[at] = [0, 0xff, 0x7f, 0x80][random.below(4)]
            case 3: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 1 + random.below(16))], at: at)
            default: bytes.removeSubrange(at..<min(bytes.count, at + 1 + random.below(16)))
            }
            if bytes.count < range.upperBound { return }
        }
    }

    /// A valid call, with valid or unexpected values.
    private func message(_ random: inout Dice) -> RawMessage {
        let members = [
            "Attach", "Ready", "Answer", "BeginTask", "EndTask", "RemainingTime", "SetStatus", "SetStateSummary",
            "Heartbeat", "SetIdle", "SaveState", "GetState", "NoSuchMethod",
        ]
        var call = RawMessage(UInt32(1 + random.below(1000)), random.pick(members), isBigEndian: random.below(4) == 0)
        let text = String(repeating: random.pick(["a", "ä", "\u{1}", "%n"]), count: random.below(100))
        switch call.member {
        case "Attach":
            call.signature = "a{sv}"
            let count = random.below(70)
            let serial = UInt64(random.below(5))
            call.body.putArray(alignment: 8) { options in
                options.putEntry("handles", "as") { handles in
                    handles.putArray(alignment: 4) { for number in 0..<count { $0.put(number == 0 ? text : "push") } }
                }
                options.putEntry("serial", "t") { $0.put(serial) }
            }
        case "Answer":
            call.signature = "ta{sv}"
            call.body.put(UInt64(random.below(20)))
            call.body.putArray(alignment: 8) { $0.putEntry("result", "s") { $0.put(text) } }
        case "BeginTask":
            call.signature = "ss"
            call.body.put(text)
            call.body.put("")
        case "EndTask", "SetStatus", "SetStateSummary":
            call.signature = "s"
            call.body.put(text)
        case "SetIdle":
            call.signature = "b"
            call.body.put(UInt32(random.below(3)))
        case "SaveState":
            call.signature = "h"
            call.body.put(UInt32(random.below(2)))
        default: break
        }
        return call
    }
}
