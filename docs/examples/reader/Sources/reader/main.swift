// A reader that stays on its page while it is suspended, and after the end of its process. `reader:12` opens page 12.

import Greenroom

final class Reader {
    private let app = App.shared
    private var page = 1 { didSet { app.setStatus("page \(page)") } }
}

extension Reader: AppDelegate {
    func restoreState(_ state: RestorationState) {
        page = state.text.flatMap { Int($0) } ?? page
    }

    func didEnterBackground() throws {
        try app.save("\(page)")
    }

    func open(url: String) {
        page = url.split(separator: ":").last.flatMap { Int($0) } ?? page
    }

    /// A push has the page on which the user reads on another device.
    func didReceivePush(_ push: Wake) throws -> WakeResult {
        guard let other = Int(push.payload), other != page else { return .noData }
        page = other
        try app.save("\(page)")
        return .newData
    }
}

App.shared.run(Reader())
