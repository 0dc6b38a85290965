/// Something that keeps an app awake in the background for as long as it lasts (L28).
struct HeldMode: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// A mode that the app asserts, and its manifest declares. One of `BackgroundModes`.
        case asserted(BackgroundModes)
        /// A process of the app holds an inhibitor of logind. The text says what it inhibits, and why.
        case inhibitor(String)
    }
    var kind: Kind
    var began: Instant

    static func asserted(_ modes: [HeldMode]) -> BackgroundModes {
        var all: BackgroundModes = []
        for mode in modes { all.formUnion(mode.asserted ?? []) }
        return all
    }

    /// The mode, if the app asserts it.
    var asserted: BackgroundModes? {
        if case .asserted(let mode) = kind { mode } else { nil }
    }
}

extension BackgroundModes {
    /// Those that an app asserts: as long as it does, it is awake. `fetch` and `push` are wakes, which the daemon begins.
    package static let assertable: BackgroundModes = [.audio, .recording, .call, .location, .accessory, .processing]

    /// The names of these modes.
    package static var assertableNames: [String] { named.filter { assertable.contains($0.mode) }.map(\.name) }

    /// The name of a single mode.
    package var name: String { Self.named.first { $0.mode == self }?.name ?? "" }

    /// The mode with this name; `nil`: there is none.
    package init?(named name: some StringProtocol) {
        guard let mode = Self.named.first(where: { $0.name == name })?.mode else { return nil }
        self = mode
    }
}
