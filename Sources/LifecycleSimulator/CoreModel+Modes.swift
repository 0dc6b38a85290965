import LifecycleCore

/// The modes of a run (L28), as events alone describe them: no effect of the core changes them.
struct ModelModes {
    /// Those that the manifest declares and an app can assert.
    var declared: BackgroundModes = [] {
        didSet {
            asserted.formIntersection(declared)
            unused.formIntersection(declared)
        }
    }
    private var asserted: BackgroundModes = []
    private var shown: BackgroundModes = []
    /// Those that the app asserts and does not use.
    private var unused: BackgroundModes = []
    private(set) var isInhibited = false

    init(_ policy: AppPolicy) { declare(policy) }

    mutating func declare(_ policy: AppPolicy) { declared = policy.backgroundModes.intersection(.assertable) }

    /// Whether the app asserts them or sources show them.
    var held: BackgroundModes { asserted.union(shown.intersection(declared)) }

    mutating func record(_ event: ModeEvent) {
        switch event {
        case .began(let mode):
            guard declared.contains(mode) else { return }
            asserted.insert(mode)
            unused.remove(mode)
        case .ended(let mode):
            asserted.subtract(mode)
            unused.subtract(mode)
        case .shown(let modes): shown = modes
        case .unused(let modes):
            let isUsed = unused.subtracting(modes)
            let isUnused = asserted.intersection(modes)
            asserted = asserted.subtracting(isUnused).union(isUsed)
            unused = unused.subtracting(isUsed).union(isUnused)
        case .inhibitorChanged(let inhibitor): isInhibited = inhibitor != nil
        }
    }
}

extension AppModel {
    /// The modes that count: none of a run that ends.
    var heldModes: BackgroundModes { mayBeInMode ? modes.held : [] }

    /// Whether a mode or an inhibitor keeps it awake.
    var isHeldByMode: Bool { mayBeInMode && (modes.isInhibited || !modes.held.isEmpty) }

    var mayBeInMode: Bool {
        switch phase {
        case .launching, .foreground, .entering, .running, .suspending, .suspended, .waking: true
        case .unknown, .notRunning, .terminating, .ending, .past: false
        }
    }
}

extension CoreModel {
    mutating func recordMode(_ event: Event) {
        switch event {
        case .configuration(.registered(let id, let policy, _)):
            if let app = indexes[id] { apps[app].modes.declare(policy) }
        case .run(let run, .mode(let what)):
            if let app = currentApp(of: run), apps[app].mayBeInMode { apps[app].modes.record(what) }
        default: break
        }
    }
}
