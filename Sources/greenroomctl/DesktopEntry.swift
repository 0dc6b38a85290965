import Glibc
import LifecycleCore

/// The entry with which desktops open URLs in an app (Desktop Entry Specification, and x-scheme-handler of the Shared MIME-info
/// Database).
struct DesktopEntry {
    let folder: String
    let path: String
    let text: String

    /// - Parameter call: of greenroomctl, for the daemon of the app.
    /// - Throws: if the entry exists.
    init(_ app: AppID, _ schemes: [String], in folder: String, call: String) throws(Failure) {
        self.folder = folder
        path = "\(folder)/greenroom-\(app).desktop"
        // The other characters of an ID need no quotes; one with a backslash is refused before (`Invocation`).
        text = """
            [Desktop Entry]
            Type=Application
            Name=\(app)
            Exec=\(call) open \(app) %u
            MimeType=\(schemes.map { "x-scheme-handler/\($0);" }.joined())
            NoDisplay=true

            """
        var about = stat()
        guard lstat(path, &about) != 0 else { throw Failure("\(escaped(path)) already exists.") }
    }
}
