import Glibc
package import Systemd

extension BusConnection {
    /// Connects to the private socket of a daemon, which is for root and the daemon's user. Other users reach the system's daemon over the
    /// message bus, as with systemctl.
    /// - Parameter runtime: the daemon's runtime folder.
    package static func connect(toDaemonAt runtime: String) throws(BusError) -> BusConnection {
        do throws(BusError) {
            return try BusConnection(path: runtime + "/bus")
        } catch {
            guard error.isOfAccessDenied, runtime == ControlNames.systemRuntime else { throw error }
            let address = BusAddress.system { name in getenv(name).map { String(cString: $0) } }
            return try BusConnection(busAddress: address, destination: ControlNames.busName)
        }
    }
}
