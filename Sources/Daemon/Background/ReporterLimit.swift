import Control
import Systemd

/// How many clients may report at the same time what unmodified programs do (`ReportModes`, `ReportAlert`), of all users and of one: a
/// user needs one, greenroom-session.
enum ReporterLimit {
    private static let mostClients = 64
    private static let mostClientsPerUser = 8

    /// Why one more client of a user is refused; `nil`: it is not.
    /// - Parameters:
    ///   - users: those of the clients that report already.
    ///   - subject: what they report.
    static func refusal(of user: UInt32, among users: [UInt32], reporting subject: String) -> BusError? {
        if users.count < mostClients, users.count(where: { $0 == user }) < mostClientsPerUser { return nil }
        return ControlNames.Failure.tooMany.error(
            "\(mostClientsPerUser) clients of uid \(user), or \(mostClients) in all, report \(subject) already.")
    }
}
