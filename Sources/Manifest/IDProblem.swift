import LifecycleCore

/// Explains why a text is no ID of an app: the end of a sentence that begins with the text.
///
/// - Returns: `nil` if it is a valid ID.
package func problemOfID(_ text: String) -> String? {
    guard AppID(text) == nil else { return nil }
    if templateName(text) != nil { return "it is a template; expected an instance of it such as \(sanitized(text))1" }
    let size = text.utf8.count
    guard size <= AppID.maximumLength else {
        return "it has \(size) bytes; expected at most \(AppID.maximumLength)"
    }
    let parts = text.utf8.split(separator: UInt8(ascii: "@"), maxSplits: 1, omittingEmptySubsequences: false)
    if parts.count == 2, let template = AppID(String(Substring(parts[0]))), template.template == nil {
        return
            "expected letters, digits, ':', '_', '.', '\\' or '-' behind the '@'; systemd-escape(1) writes other characters so"
    }
    return "expected 1 to \(AppID.maximumLength) letters, digits, '_', '.' or '-', not starting with a dot"
}
