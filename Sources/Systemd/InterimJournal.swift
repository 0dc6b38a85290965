import CSystemd
import Glibc

package final class Journal {
    package enum Level: Int32 { case error = 3, warning = 4, notice = 5, info = 6, debug = 7 }
    let level: Level
    package init(identifier: String, level: Level) { self.level = level }
    package func log(_ priority: Level, _ message: String, fields: [(String, String)]) {
        guard priority.rawValue <= level.rawValue else { return }
        let now = EventLoop.now()
        let line = "\(now.components.seconds % 1000).\(now.components.attoseconds / 1_000_000_000_000_000) \(message)\n"
        _ = line.withCString { write(2, $0, strlen($0)) }
    }
    package var description: String { "log on standard error" }
}
package func notifyServiceManager(_ state: String) { sd_notify(0, state) }
