/// The answer to a request for a change of an app, and to `Reexec`.
package struct RequestResult: Record {
    package enum Outcome: String, CaseIterable, Sendable {
        /// The change was made.
        case done
        /// The app ended instead; `lastReceipt` says why.
        case ended
        /// A later request asked for something else.
        case superseded
    }

    /// An `Outcome`.
    package var outcome = ""
    /// The app's state now; absent for `Reexec`.
    package var state: String?
    /// One sentence.
    package var explanation: String?
    package var lastReceipt: ReceiptRecord?
    /// Whether the app was launched with a manifest that has changed on disk since; only in the answer to `Launch`.
    package var needsReload: Bool?
    /// Sentences about the app that its user should know; only in the answer to `Launch`.
    package var warnings: [String] = []
    /// The number of a push, or of another wake, that was accepted: it names the wake (`X_GREENROOM_WAKE_ID=`) and the file of the
    /// push; absent for other requests.
    package var wakeID: UInt64?
    /// The app that was given the URL; only in the answer to `Open`.
    package var app: String?

    package init() {}

    package init(_ outcome: Outcome, state: String? = nil) {
        self.outcome = outcome.rawValue
        self.state = state
    }

    package static let fields: [RecordField<RequestResult>] = [
        .required("outcome", \.outcome), .optional("state", \.state), .optional("explanation", \.explanation),
        .optional("lastReceipt", \.lastReceipt), .optional("needsReload", \.needsReload),
        .list("warnings", \.warnings),
        .optional("wakeId", \.wakeID), .optional("app", \.app),
    ]
}

/// The options of `Launch`.
package struct LaunchOptions: Record {
    /// Launch into the background; the default is the foreground.
    package var background: Bool?
    /// The reason that the app is given: `user`, `url`, `push`, … The default is `user`, with a URL `url`.
    package var reason: String?
    package var url: String?
    /// Variables for this launch alone, as `NAME=value`. They override those of the manifest.
    package var environment: [String] = []

    package init() {}

    package static let fields: [RecordField<LaunchOptions>] = [
        .optional("background", \.background), .optional("reason", \.reason), .optional("url", \.url),
        .list("environment", \.environment),
    ]
}

/// The answer to `Reload`.
package struct ReloadResult: Record {
    /// How many manifests are valid.
    package var apps: UInt64 = 0
    /// Diagnostics, a line each: `FILE:LINE:COLUMN: error: …`; without a position in a file: `error: …`.
    package var errors: [String] = []
    package var warnings: [String] = []

    package init() {}

    package static let fields: [RecordField<ReloadResult>] = [
        .required("apps", \.apps), .required("errors", \.errors), .required("warnings", \.warnings),
    ]
}

/// The answer to `RecentEvents`.
package struct RecentEvents: Record {
    /// The number of the last event of the daemon.
    package var serial: UInt64 = 0
    /// The events after the one that the caller has named, oldest first, as far as the daemon has kept them.
    package var events: [LifecycleEvent] = []
    /// Whether these are all that this daemon has sent since.
    package var isComplete = false

    package init() {}

    package static let fields: [RecordField<RecentEvents>] = [
        .required("serial", \.serial), .list("events", \.events), .required("complete", \.isComplete),
    ]
}
