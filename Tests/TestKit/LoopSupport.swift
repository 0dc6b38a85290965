package import LoopPolicy
package import Posix
package import Systemd

extension EventLoop {
    /// A source whose every turn counts as progress.
    package func addDescriptor(
        _ descriptor: SharedDescriptor, events: EpollEvents, level: LoopLevel = .apps,
        handler: @escaping (EpollEvents) -> Void
    ) throws(SystemError) -> EventSource {
        try addDescriptor(descriptor, events: events, kind: .any(of: level)) {
            handler($0)
            return .progress
        }
    }

    package func makeTimer(level: LoopLevel = .apps, handler: @escaping (Duration) -> Void) throws(SystemError)
        -> Systemd.Timer
    {
        try makeTimer(kind: .any(of: level), handler: handler)
    }
}

extension SourceKind {
    /// The first kind of this level.
    package static func any(of level: LoopLevel) -> SourceKind { allCases.first { $0.level == level }! }
}
