/// Something that keeps an app awake in the background for as long as it lasts (L28).
struct HeldMode: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// A mode that the manifest declares, and the app asserts or a source shows. One of `BackgroundModes`.
        case mode(BackgroundModes)
        /// A process of the app holds an inhibitor of logind. The text says what it inhibits, and why.
        case inhibitor(String)
    }
    var kind: Kind
    var began: Instant
    /// A source outside the program shows it, such as an audible stream. The app does not assert it, and cannot end it.
    var isShown = false

    static func set(_ modes: [HeldMode]) -> BackgroundModes {
        var all: BackgroundModes = []
        for mode in modes { all.formUnion(mode.mode ?? []) }
        return all
    }

    /// The mode, unless it is an inhibitor.
    var mode: BackgroundModes? {
        if case .mode(let mode) = kind { mode } else { nil }
    }
}

extension BackgroundModes {
    /// Those that an app asserts, or a source shows: as long as it does, the app is awake. `fetch` and `push` are wakes, which the
    /// daemon begins.
    package static let assertable: BackgroundModes = [.audio, .recording, .call, .location, .accessory, .processing]

    /// Each of these modes.
    static var eachAssertable: [BackgroundModes] { named.map(\.mode).filter { assertable.contains($0) } }

    /// The names of these modes.
    package static var assertableNames: [String] { eachAssertable.map(\.name) }

    /// The name of a single mode.
    package var name: String { Self.named.first { $0.mode == self }?.name ?? "" }

    /// The mode with this name; `nil`: there is none.
    package init?(named name: some StringProtocol) {
        guard let mode = Self.named.first(where: { $0.name == name })?.mode else { return nil }
        self = mode
    }
}
