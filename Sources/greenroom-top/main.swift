import CNcurses
import Glibc
import Posix
import Systemd

// In a function: global variables of a main file belong to the main actor.
private func start() -> Int32 {
    do { try openStandardDescriptors() } catch { return fail("\(error)") }
    guard let options = Options(Array(CommandLine.arguments.dropFirst())) else {
        return fail("greenroom-top is executed by 'greenroomctl top'", status: 2)
    }
    cncurses_locale("")
    let link = DaemonLink(runtime: options.runtime, interval: options.interval)
    do throws(BusError) { try link.connect() } catch { return fail(error.message.escaped()) }
    if let count = options.batch { return runBatch(options, link, count: count) }
    let wantsColor = getenv("NO_COLOR").map { $0[0] == 0 } ?? true
    Ending.handle()
    guard let screen = CursesScreen(hasColor: wantsColor) else {
        let term = getenv("TERM").map { String(cString: $0) } ?? ""
        return fail("top: the terminal '\(term.escaped())' cannot move its cursor; use --batch", status: 2)
    }
    let status = Top(options, link, screen).run()
    screen.close()
    Ending.repeatSignal()
    return status
}

exit(start())
