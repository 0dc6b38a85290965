import Control
import Systemd

/// Made-up records with the interface's keys.
enum Records {
    static let receipt: [(String, Variant)] = [
        ("id", .uint64(12)), ("app", .string("photos")), ("pid", .int32(4711)),
        ("time", .string("2025-11-21T07:12:03.250Z")), ("state", .string("launching")),
        ("namespace", .string("watchdog")), ("code", .string("0x8badf00d")),
        ("explanation", .string("did not finish launching within 5 s")), ("signal", .int32(9)),
        ("coreDumped", .bool(false)), ("wallSeconds", .double(5.21)), ("cpuSeconds", .double(0.31)),
        ("memoryBytes", .uint64(14_365_491)),
        (
            "deadline",
            .dictionary([
                ("what", .string("launch")), ("allowedSeconds", .double(5)), ("wallSeconds", .double(5.02)),
                ("cpuSeconds", .double(0.3)),
            ])
        ),
        (
            "candidates",
            .dictionaries([
                [("app", .string("photos")), ("state", .string("suspended")), ("memoryBytes", .uint64(1 << 30))],
                [("app", .string("mail")), ("state", .string("background")), ("memoryBytes", .uint64(1 << 20))],
            ])
        ),
    ]

    static let photos: [(String, Variant)] = [
        ("id", .string("photos")), ("name", .string("Photos")), ("state", .string("background")), ("pid", .int32(4711)),
        ("since", .string("2025-11-21T07:12:03.250Z")), ("memoryBytes", .uint64(14_365_491)),
        (
            "tasks",
            .dictionaries([
                [
                    ("name", .string("up\u{1B}[2Jload")), ("remainingSeconds", .double(28.2)),
                    ("ageSeconds", .double(2)),
                    ("owner", .int32(4712)),
                ]
            ])
        ),
        ("deadline", .dictionary([("what", .string("background")), ("remainingSeconds", .double(3.21))])),
        ("foreground", .bool(false)), ("launches", .uint64(3)), ("interruptions", .uint64(0)),
        ("statusText", .string("busy\nwith \u{202E}things")), ("lastReceipt", .dictionary(receipt)),
    ]

    static let mail: [(String, Variant)] = [
        ("id", .string("org.example.Mail")), ("name", .string("org.example.Mail")), ("state", .string("notRunning")),
        ("since", .string("2025-11-21T07:00:00.000Z")), ("memoryBytes", .uint64(0)), ("tasks", .dictionaries([])),
        ("foreground", .bool(false)), ("launches", .uint64(0)), ("interruptions", .uint64(0)),
    ]

    static let broken: [(String, Variant)] = [
        ("id", .string("broken")), ("name", .string("broken")), ("state", .string("notRunning")),
        ("error", .string("broken.app:2:1: error: no such key")),
    ]

    static func done(_ state: String) -> Variant {
        .dictionary([("outcome", .string("done")), ("state", .string(state))])
    }

    static let ended = Variant.dictionary([
        ("outcome", .string("ended")), ("state", .string("notRunning")),
        ("explanation", .string("did not finish launching within 5 s")), ("receipt", .dictionary(receipt)),
    ])
}
