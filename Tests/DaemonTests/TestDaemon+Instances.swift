import JSON
import Linux
import Posix
import Systemd

extension TestDaemon {
    /// The IDs of all apps, as `List` answers.
    func listed() throws -> [String] {
        (JSONValue(try call("List")[0]).arrayValue ?? []).compactMap { $0["id"]?.stringValue }
    }

    func writeFile(_ path: String, _ text: String) throws { try replaceFile(at: path, with: Array(text.utf8)) }

    /// Writes a manifest or, with `.d/NAME.conf` at its end, a drop-in below `apps`.
    func write(_ name: String, _ text: String) throws {
        let path = config + "/apps/" + name
        if let folder = path.firstRange(of: ".d/") {
            try createDirectories(at: String(path[..<folder.lowerBound]) + ".d")
        }
        try writeFile(path, text)
    }

    /// - Returns: the errors in the answer.
    @discardableResult
    func reload() throws -> [String] {
        (JSONValue(try call("Reload")[0])["errors"]?.arrayValue ?? []).compactMap(\.stringValue)
    }

    /// The sentence with which a call fails; `nil`: it succeeded.
    func refusal(_ member: String, _ arguments: [Variant]) -> String? {
        do {
            _ = try call(member, arguments)
            return nil
        } catch let error as BusError {
            return error.message
        } catch {
            return "\(error)"
        }
    }

    func launchRefusal(_ app: String, _ options: [(String, Variant)] = []) -> String? {
        refusal("Launch", [.string(app), .dictionary(options)])
    }

    /// A variable in the environment of the main process.
    func variable(_ name: String, of app: String) throws -> String? {
        let environment = TestDaemon.text(of: "/proc/\(try pid(app))/environ").split(separator: "\0")
        return environment.first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.utf8.count + 1)) }
    }
}
