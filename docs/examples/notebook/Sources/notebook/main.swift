// A notebook with a window for each note, without the windows: `notebook:report?text` opens a note and adds a line to it. The text of
// a window is its snapshot: `greenroomctl snapshot notebook --scene report`.
//
// The notes are in STATE_DIRECTORY; what is not written yet is in the restoration state of its window. After the process has ended,
// the window that was in front comes back with the app, and the others when they are activated.

import Glibc
import Greenroom

final class Notebook {
    private let app = App.shared
    private let folder = getenv("STATE_DIRECTORY").map { String(cString: $0) } ?? "."
    /// The lines that are not written yet, by window.
    private var unsaved: [String: [String]] = [:]
    private var shown: Set<String> = [] { didSet { app.setStatus("shows " + shown.sorted().joined(separator: ", ")) } }

    private func connect(_ name: String) throws {
        guard unsaved[name] == nil else { return }
        let state = try app.restore(scene: name)?.text ?? ""
        unsaved[name] = state.split(separator: "\n").map(String.init)
    }

    private func read(_ name: String) -> [String] {
        guard let file = fopen("\(folder)/\(name).txt", "r") else { return unsaved[name, default: []] }
        var (line, size, lines) = (UnsafeMutablePointer<CChar>?.none, 0, [String]())
        while getline(&line, &size, file) > 0, let line {
            lines += String(cString: line).split(separator: "\n").map(String.init)
        }
        free(line)
        fclose(file)
        return lines + unsaved[name, default: []]
    }

    private func page(_ name: String) -> String { "\(name): " + read(name).suffix(3).joined(separator: " / ") }

    private func write(_ lines: [String], to name: String) {
        guard let file = fopen("\(folder)/\(name).txt", "a") else { return }
        for line in lines { fputs(line + "\n", file) }
        fclose(file)
    }
}

extension Notebook: AppDelegate {
    func open(url: String) throws {
        let words = url.dropFirst("notebook:".count).split(separator: "?", maxSplits: 1).map(String.init)
        guard let name = words.first, name.allSatisfy(\.isLetter) else { return }
        try connect(name)
        if words.count > 1 {
            unsaved[name]?.append(words[1])
            try app.save(unsaved[name, default: []].joined(separator: "\n"), scene: name)
        }
        try app.beginScene(name)
    }

    func sceneDidChange(_ name: String, _ notice: SceneNotice) throws {
        switch notice {
        case .willConnect: try connect(name)
        case .willEnterForeground, .didBecomeActive: shown.insert(name)
        case .willResignActive: break
        case .didEnterBackground: shown.remove(name)
        case .didDisconnect:
            // Its lines are in its restoration state.
            unsaved[name] = nil
            shown.remove(name)
        }
    }

    func didEnterBackground() throws {
        for (name, lines) in unsaved where !lines.isEmpty {
            write(lines, to: name)
            unsaved[name] = []
            try app.save("", scene: name)
        }
    }

    func takeSnapshot() -> Snapshot? { Snapshot(text: unsaved.keys.sorted().map(page).joined(separator: "\n")) }

    func takeSnapshot(scene: String) -> Snapshot? { Snapshot(text: page(scene)) }
}

App.shared.run(Notebook())
