import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd

/// `snapshot`: what an app, or a scene of it, showed last (L18, L34).
extension Session {
    /// The largest snapshot in bytes.
    private static let maximumSnapshot = 8 << 20

    private struct Snapshot {
        var bytes: [UInt8]
        var type: String
        var time: Timestamp
    }

    func snapshot() throws(Failure) -> Int32 {
        let app = operands[0]
        let snapshot = try snapshot(of: app)
        if let name = invocation.options[.output] {
            do throws(SystemError) {
                try replaceFile(at: environment.absolutePath(name), with: snapshot.bytes, mode: 0o600)
            } catch {
                throw Failure("snapshot: \(error)")
            }
        }
        if wantsJSON {
            let scene = invocation.options[.scene].map { [("scene", JSONValue.string($0))] } ?? []
            try show(
                .object(
                    [("app", .string(app))] + scene + [
                        ("type", .string(snapshot.type)), ("time", snapshot.time.json),
                        ("bytes", UInt64(snapshot.bytes.count).json),
                    ]))
        } else if !invocation.has(.output) {
            try show(snapshot, app)
        }
        return 0
    }

    /// A terminal gets text only, without what would control it.
    private func show(_ snapshot: Snapshot, _ app: String) throws(Failure) {
        guard screen.isTerminal else { return try write(snapshot.bytes[...], to: STDOUT_FILENO) }
        guard MediaType.isText(snapshot.type) else {
            throw Failure(
                "snapshot: the snapshot of '\(escaped(app))' is \(escaped(snapshot.type)), which a terminal does not show; "
                    + "-o FILE writes it to a file")
        }
        try show(printable(String(decoding: snapshot.bytes, as: UTF8.self)))
    }

    private func snapshot(of app: String) throws(Failure) -> Snapshot {
        let (client, scene) = (try connect(), invocation.options[.scene])
        let found = try client.withAuthorization { () throws(Failure) in try client.snapshot(of: app, scene) }
        guard let answer = found else {
            // The daemon names the apps that it has.
            _ = try client.call("Status", [.string(app)], as: AppStatus.self)
            throw Failure("snapshot: there is no app '\(escaped(app))'")
        }
        guard answer.count == 3, let bytes = try contents(answer[0]), let type = answer[1].stringValue,
            let time = answer[2].uintValue
        else { throw Failure("snapshot: the daemon's answer is not a snapshot") }
        return Snapshot(bytes: bytes, type: type, time: Timestamp(microseconds: time))
    }

    /// - Returns: `nil`: it is something else.
    private func contents(_ value: Variant) throws(Failure) -> [UInt8]? {
        switch value {
        case .bytes(let bytes): return bytes
        case .descriptor(let file):
            do throws(SystemError) {
                return try MemoryFile.contents(file.descriptor, limit: Self.maximumSnapshot)
            } catch {
                throw Failure("snapshot: \(error)")
            }
        default: return nil
        }
    }
}
