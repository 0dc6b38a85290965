import Control
import Glibc
import Posix
import Systemd

/// `--batch`: tables as text, one after the other.
func runBatch(_ options: Options, _ link: DaemonLink, count: Int) -> Int32 {
    var state = TopState()
    var meter = ProcessorMeter()
    if let sort = options.sort { state.model.sort = sort }
    let columns = getenv("COLUMNS").flatMap { Int(String(cString: $0)) }.flatMap {
        (1...10_000).contains($0) ? $0 : nil
    }
    var left = count
    while left > 0, Ending.signal == 0 {
        link.refresh(at: EventLoop.now(), isPaused: false)
        for arrival in link.read() {
            let now = EventLoop.now()
            switch arrival {
            case .list(let apps):
                state.list(apps, at: now, processor: meter.measure(apps, at: now))
                let rows = max(10, state.model.lines + 4)
                // The screen has at least ten lines, and its last one names keys.
                var lines = Picture(state, rows: rows, columns: columns ?? 140, at: now).lines.dropLast().map(\.text)
                while lines.last == "" { lines.removeLast() }
                let text = lines.map { $0 + "\n" }.joined()
                guard write(text + (left > 1 ? "\n" : ""), to: STDOUT_FILENO) else { return 1 }
                left -= 1
            case .memory(let memory): state.model.memory = memory
            case .version(let version): state.version = version
            case .lost(let sentence):
                return fail(sentence.escaped())
            case .status, .event, .answer: break
            }
        }
        let now = EventLoop.now()
        let limit = link.waiting(at: now) == nil ? link.next : now + .seconds(1)
        if left > 0 { _ = link.wait(or: [], until: max(now, limit)) }
    }
    return 0
}

/// Prints an error as greenroomctl, which has started this program.
/// - Returns: the exit status.
func fail(_ sentence: String, status: Int32 = 1) -> Int32 {
    _ = write("greenroomctl: \(sentence)\n", to: STDERR_FILENO)
    return status
}

/// Writes the whole text. SIGPIPE ends the program if the reader of a pipe is gone.
/// - Returns: whether it was written.
private func write(_ text: String, to descriptor: Int32) -> Bool {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
        let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        if count < 0, errno != EINTR { return false }
        bytes = bytes.dropFirst(max(0, count))
    }
    return true
}
