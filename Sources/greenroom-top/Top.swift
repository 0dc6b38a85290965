import CNcurses
import Control
import Glibc
import Posix
import Systemd

/// The program with a screen: reads keys, what the daemon sends and what greenroomctl prints, and draws.
final class Top {
    private let options: Options
    private let link: DaemonLink
    private let screen: CursesScreen
    private var state = TopState()
    private var meter = ProcessorMeter()
    /// The programs whose output the page shows, one after the other.
    private var child: ChildProgram?
    private var commands: [[String]] = []
    /// The next output of the page of an app; it replaces the last one when it is complete.
    private var output: [String] = []
    /// When the page of an app is read again.
    private var nextPage: Duration?
    private var lostAt: Duration?
    private var isRedrawn = false
    private var isDirty = true
    /// A key was typed: the answer is drawn at once.
    private var isUrgent = false
    /// Events have changed what apps are sorted by.
    private var isUnsorted = false
    private var nextPicture = Duration.zero
    private var nextTick = Duration.zero

    /// Between two pictures if many events arrive: more than 20 in a second cannot be read.
    private static let pause = Duration.milliseconds(50)
    /// How often countdowns are drawn: their last digit are seconds.
    private static let tick = Duration.seconds(1)
    /// An answer that takes longer is mentioned.
    private static let slow = Duration.seconds(5)
    /// The receipts on the page of an app, and the lines of a log that are read at once.
    private static let (receipts, logLines) = (20, 1000)
    private static let receiptHeading = "Receipts:"

    init(_ options: Options, _ link: DaemonLink, _ screen: CursesScreen) {
        self.options = options
        self.link = link
        self.screen = screen
        if let sort = options.sort { state.model.sort = sort }
    }

    /// Runs until `q` or a signal.
    /// - Returns: the exit status.
    func run() -> Int32 {
        while true {
            while let key = screen.nextKey() {
                state.rows = screen.size.rows
                (isDirty, isUrgent) = (true, true)
                if let action = state.press(key), !perform(action) { return 0 }
            }
            take(link.read())
            let now = EventLoop.now()
            reconnect(now)
            refreshPage(now)
            link.refresh(at: now, isPaused: isPaused)
            draw(now)
            if !wait(now) || Ending.signal != 0 { return 0 }
        }
    }

    /// Whether the apps are not shown.
    private var isPaused: Bool { if case .page = state.view { true } else { false } }

    // MARK: Drawing

    private func draw(_ now: Duration) {
        if let waiting = link.waiting(at: now), waiting > Self.slow {
            state.alarm = "greenroomd has not answered for \(countdown(waiting))"
        }
        // A countdown is drawn when its second ends.
        if now >= nextTick {
            nextTick = now + Self.tick
            isDirty = true
        }
        guard isDirty, isUrgent || now >= nextPicture else { return }
        (isDirty, isUrgent) = (false, false)
        nextPicture = now + Self.pause
        if isUnsorted { state.model.arrange() }
        isUnsorted = false
        let size = screen.size
        state.rows = size.rows
        state.scroll()
        screen.show(Picture(state, rows: size.rows, columns: size.columns, at: now), everything: isRedrawn)
        isRedrawn = false
    }

    /// - Returns: whether the terminal still exists.
    private func wait(_ now: Duration) -> Bool {
        var limit = nextTick
        if !isPaused || !link.isConnected { limit = min(limit, max(link.next, now)) }
        if link.waiting(at: now) != nil { limit = nextTick }
        if isDirty { limit = min(limit, nextPicture) }
        var watched: [(number: Int32, events: Int16)] = [(STDIN_FILENO, Int16(POLLIN))]
        if let child { watched.append((child.descriptor, Int16(POLLIN))) }
        let found = link.wait(or: watched, until: limit)
        if found.count > 1, found[1] != 0 { readChild() }
        // A terminal that is gone is readable, and has nothing to read.
        return found[0] & Int16(POLLHUP | POLLERR | POLLNVAL) == 0
    }

    // MARK: The daemon

    private func take(_ arrivals: [DaemonLink.Arrival]) {
        for arrival in arrivals {
            isDirty = true
            let now = EventLoop.now()
            switch arrival {
            case .list(let apps):
                state.alarm = nil
                state.list(apps, at: now, processor: meter.measure(apps, at: now))
            case .status(let app):
                state.model.update(app, at: now)
                isUnsorted = true
            case .memory(let memory): state.model.memory = memory
            case .event(let event):
                guard let app = state.model.apply(event, at: now) else { continue }
                isUnsorted = true
                link.refresh(app)
            case .version(let version): state.version = version
            case .answer(let sentence, let isError): state.notice = TopState.Notice(sentence, isError: isError)
            case .lost(let sentence):
                lostAt = now
                state.alarm = "\(sentence); connecting again"
            }
        }
    }

    /// Connects to the next daemon, after a restart or a reexec.
    private func reconnect(_ now: Duration) {
        guard !link.isConnected, now >= link.next, let lost = lostAt else { return }
        do throws(BusError) {
            try link.connect()
            lostAt = nil
            state.alarm = nil
            state.notice = TopState.Notice("Connected to greenroomd again")
        } catch {
            link.postpone()
            state.alarm = "No greenroomd for \(countdown(EventLoop.now() - lost)); connecting again"
        }
        isDirty = true
    }

    // MARK: Actions

    /// - Returns: whether the program continues.
    private func perform(_ action: Action) -> Bool {
        switch action {
        case .quit: return false
        case .redraw: isRedrawn = true
        case .request(let request, let app):
            let problem = link.request(request, app)
            state.notice = TopState.Notice(
                problem.map { "\(app): \($0)" } ?? "\(app): \(request.sentence) …", isError: problem != nil)
        case .open(let content): open(content)
        case .close:
            (child, commands, nextPage) = (nil, [], nil)
            link.refreshSoon()
        }
        return true
    }

    private func open(_ content: Page.Content) {
        output = []
        let daemon = ["--runtime", options.runtime]
        switch content {
        case .app(let app):
            commands = [
                daemon + ["status", "--verbose", "--", app],
                daemon + ["receipts", "--lines", "\(Self.receipts)", "--", app],
            ]
        case .log(let app): commands = [daemon + ["log", "--follow", "--lines", "\(Self.logLines)", "--", app]]
        case .help: commands = []
        }
        startNext()
    }

    private func startNext() {
        child = nil
        guard !commands.isEmpty, case .page(var page) = state.view else { return }
        let words = commands.removeFirst()
        child = ChildProgram(options.control, words, columns: screen.size.columns)
        if child == nil { page.add(["Cannot execute \(options.control)"]) }
        page.isLoading = child != nil
        state.view = .page(page)
    }

    private func readChild() {
        guard let child, case .page(var page) = state.view else { return }
        isDirty = true
        let lines = child.read()
        let isLog = if case .log = page.content { true } else { false }
        if isLog { page.add(lines) } else { output += lines }
        page.isLoading = false
        if child.isAtEnd, commands.isEmpty, !isLog {
            // `receipts` prints nothing if there are none.
            if output.last == Self.receiptHeading { output.append("  none") }
            page.lines = []
            page.add(output)
            nextPage = EventLoop.now() + options.interval
        }
        state.view = .page(page)
        guard child.isAtEnd else { return }
        if !commands.isEmpty { output += ["", Self.receiptHeading] }
        startNext()
    }

    /// Reads the page of an app again.
    private func refreshPage(_ now: Duration) {
        guard let time = nextPage, now >= time, child == nil, case .page(let page) = state.view else { return }
        nextPage = nil
        open(page.content)
    }
}

extension Request {
    fileprivate var sentence: String {
        switch self {
        case .activate: "activating"
        case .background: "moving it to the background"
        case .terminate: "terminating"
        }
    }
}

/// Signals that end the program, after it has given the terminal back.
enum Ending {
    /// The signal; 0: none has arrived. A signal handler may only set it (signal-safety(7)).
    nonisolated(unsafe) private(set) static var signal: Int32 = 0

    /// ncurses would exit in the handler, and the program whose output a page shows would remain. An ignored signal stays ignored.
    static func handle() {
        for number in [SIGINT, SIGTERM, SIGQUIT, SIGHUP] {
            let before = Glibc.signal(number) { Ending.signal = $0 }
            if unsafeBitCast(before, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self) {
                Glibc.signal(number, SIG_IGN)
            }
        }
    }

    /// Ends by the signal, so that the caller sees it.
    static func repeatSignal() {
        guard signal != 0 else { return }
        Glibc.signal(signal, SIG_DFL)
        raise(signal)
    }
}
