import CSystemd
import Glibc
package import LoopPolicy
import Posix

/// Work that the loop does in a later turn, after the sources of the same priority that already wait.
///
/// Each `schedule` creates a new defer source: sd-event serves the source of a priority that became pending first, and a
/// defer source that is enabled again counts as pending since it was created, so that it would always be the first.
package final class DeferredCall {
    private unowned let loop: EventLoop
    private let kind: SourceKind
    private let label: StaticString
    /// Called once for each `schedule`, or for several before it runs.
    package var handler: () -> Void
    private var source: EventSource?

    package init(
        loop: EventLoop, kind: SourceKind, label: StaticString = #fileID,
        handler: @escaping () -> Void = {}
    ) {
        self.loop = loop
        self.kind = kind
        self.label = label
        self.handler = handler
    }

    /// Lets the handler run once, in a later turn. After the loop has ended nothing happens.
    package func schedule() {
        guard source == nil else { return }
        source = loop.addDeferred(kind: kind, label: label) { [weak self] in
            guard let self else { return }
            self.source = nil
            self.handler()
        }
    }

    package func cancel() { source = nil }
}
