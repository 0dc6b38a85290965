import Linux
import LoopPolicy
import Posix
import Systemd

/// The battery, devices that come and go, and screens. A message about a device makes this read what devices there are, on a helper
/// thread: the kernel may wait for one that does not answer.
final class DeviceSource {
    private let root: String
    private let isWanted: (String) -> Bool
    private let report: (String, String) -> Void
    private let reader: AttributeReader
    private var answers: EventSource?
    private var messages: ReadingSource?
    /// The kinds to read, and those that are being read, with their files.
    private var due = Set(DeviceFolders.kinds)
    private var reading: [(kind: String, files: [String])] = []

    /// - Parameters:
    ///   - root: `/sys`; another folder in tests.
    ///   - events: has messages about devices.
    ///   - isWanted: whether a kind is read now.
    ///   - report: gets the kind and the payload.
    init(
        _ loop: EventLoop, root: String, events: SharedDescriptor, isWanted: @escaping (String) -> Bool,
        report: @escaping (String, String) -> Void
    ) throws(SystemError) {
        self.root = root
        self.isWanted = isWanted
        self.report = report
        reader = try AttributeReader()
        if let completions = reader.completions {
            answers = try loop.addDescriptor(completions, events: .readable, kind: .helperAnswer) { [weak self] _ in
                TurnResult(self?.answered() ?? true)
            }
        }
        let trigger = ReadingSource.Trigger(descriptor: events) { [weak self] in self?.take($0) ?? false }
        messages = try ReadingSource(loop, [trigger]) { [weak self] in self?.read() }
    }

    /// Reads kinds again, or for the first time.
    func readSoon(_ kinds: [String]) {
        due.formUnion(kinds)
        messages?.readSoon()
    }

    private func take(_ descriptor: SharedDescriptor) -> Bool {
        let subsystems = DeviceEvents.read(descriptor) ?? DeviceFolders.subsystems
        let concerned = DeviceFolders.kinds.filter { DeviceFolders.isConcerned($0, by: subsystems) }
        due.formUnion(concerned)
        return !concerned.isEmpty
    }

    private func read() {
        // The rest follows with the answer.
        guard !reader.isBusy else { return }
        reading = due.filter(isWanted).sorted().map { ($0, DeviceFolders.files($0, root: root)) }
        if reading.isEmpty { return }
        try? reader.read(reading.flatMap(\.files))
        // Without memory for the job the next message is another chance.
        if reader.isBusy { due.subtract(reading.map(\.kind)) }
    }

    private func answered() -> Bool {
        guard let contents = reader.take() else { return false }
        for (kind, files) in reading where isWanted(kind) {
            report(kind, DeviceFolders.payload(kind, files, contents, root: root))
        }
        reading = []
        if due.contains(where: isWanted) { messages?.readSoon() }
        return true
    }
}
