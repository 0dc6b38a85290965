import Control
import Glibc
import Systemd

/// The apps that a command line names.
extension Session {
    /// Replaces patterns (fnmatch(3)) by the IDs that they match, each once and in the order of the IDs.
    ///
    /// A pattern that matches no app is no error, as with systemctl; a note on standard error says so.
    func expand(_ words: [String], _ client: Client) throws(Failure) -> [String] {
        guard words.contains(where: isPattern) else { return unique(words) }
        let all = try client.call("List", as: [AppStatus].self).map(\.id)
        var found: [String] = []
        for word in words {
            guard isPattern(word) else {
                found.append(word)
                continue
            }
            let matches = all.filter { isMatch($0, word) }
            if matches.isEmpty { reportUnmatched(word) }
            found += matches
        }
        return unique(found)
    }

    func isMatch(_ id: String, _ word: String) -> Bool {
        isPattern(word) ? fnmatch(word, id, 0) == 0 : word == id
    }

    /// With --json there is an empty list instead.
    func reportUnmatched(_ pattern: String) {
        guard !wantsJSON else { return }
        try? write("greenroomctl: no app matches '\(escaped(pattern))'.\n", to: STDERR_FILENO)
    }

    private func unique(_ names: [String]) -> [String] {
        var seen: Set<String> = []
        return names.filter { seen.insert($0).inserted }
    }
}
