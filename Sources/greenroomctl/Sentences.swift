import Control
import LifecycleCore

/// What is said about an app, for people: one plain sentence a line. Details are shown with -v.
struct Sentences: Equatable {
    private var all: [(text: String, isDetail: Bool)] = []

    static func == (a: Sentences, b: Sentences) -> Bool { a.lines(verbose: true) == b.lines(verbose: true) }

    /// - Parameter text: a sentence, or a phrase that becomes one; `nil`: there is nothing to say.
    mutating func add(_ text: String?) {
        if let text, !text.isEmpty { all.append((sentence(text), false)) }
    }

    mutating func add(detail: String?) {
        if let detail, !detail.isEmpty { all.append((sentence(detail), true)) }
    }

    static func + (a: Sentences, b: Sentences) -> Sentences {
        var sum = a
        sum.all += b.all
        return sum
    }

    func lines(verbose: Bool) -> [String] { all.filter { verbose || !$0.isDetail }.map(\.text) }
}

/// A phrase as a sentence: `it has nothing to do` becomes `It has nothing to do.`
func sentence(_ phrase: String) -> String {
    let first = phrase.prefix(1).uppercased() + phrase.dropFirst()
    return first.hasSuffix(".") ? first : first + "."
}

extension AppStatus {
    /// Why the app runs or not, or what would change that.
    var reasons: Sentences {
        switch state {
        case "notRunning": launchReasons
        case "suspended": wakeConditions
        default: awakeReasons
        }
    }

    // MARK: Awake

    /// Why the app is awake, and when it is suspended.
    var awakeReasons: Sentences {
        var found = Sentences()
        for reason in awake {
            found.add(reason.explanation)
        }
        let isHeld = awake.contains { ["fileLock", "resource"].contains($0.reason) }
        found.add(
            suspendsIn.map {
                isHeld
                    ? "its suspension is tried again in \(countdown($0))"
                    : "it is suspended in \(countdown($0)) unless it works"
            })
        return found + watchProblems
    }

    /// At which descriptors input cannot wake the app.
    var watchProblems: Sentences {
        var found = Sentences()
        for unwatched in watch?.unwatched ?? [] { found.add(unwatched.phrase) }
        return found
    }

    // MARK: Suspended

    /// What wakes a suspended app, when, and what waits until then.
    var wakeConditions: Sentences {
        var found = Sentences()
        // Held sockets wake whatever Traffic= says.
        found.add(heldInput.map { "\($0) wakes it" })
        if let wakeProblem {
            found.add(wakeProblem)
            return found + watchProblems
        }
        if let watch {
            found = found + inputConditions(watch, hasHeld: heldInput != nil)
        } else if heldInput == nil {
            found.add("only a request wakes it")
        }
        found = found + watchProblems
        found.add(timerIn.map { "its next timer wakes it in \(countdown($0))" })
        found.add(pulseIn.map { "it runs for a moment in \(countdown($0)); KeepAwake=timers would keep it awake" })
        found.add(detail: shortestWait.map { "its ticks of \($0.timeSpan) do not run while it is suspended" })
        return found
    }

    private func inputConditions(_ watch: WatchStatus, hasHeld: Bool) -> Sentences {
        var found = Sentences()
        if watch.onlyPeers == true || watch.watched == 0 {
            if !hasHeld { found.add("only a request wakes it") }
            found.add(
                detail: watch.onlyPeers == true
                    ? "with Traffic=no, input wakes it only if the buffer of a peer on this machine is more than half full"
                    : "it has no descriptor at which input can wake it")
            return found
        }
        if let bytes = watch.thresholdBytes {
            let time = watch.thresholdTime.map { ", and less after \($0.timeSpan)" } ?? ""
            found.add("input of \(formattedSize(bytes)) wakes it\(time)")
        } else {
            found.add("input wakes it")
        }
        found.add(detail: "\(watch.watched) \(watch.watched == 1 ? "descriptor is" : "descriptors are") watched")
        return found
    }

    /// What waits until a suspended app is awake again, and how long it stays in memory.
    var suspendedWith: Sentences {
        var found = Sentences()
        found.add(deferredWake?.plain)
        found.add(detail: deferredWake?.input?.phrase)
        found.add(heldLocks?.phrase)
        found.add(unloadsIn.map { "it is unloaded in \(countdown($0)) unless it is woken" })
        return found
    }

    // MARK: Not running

    /// What launches an app that does not run, and why it is not launched. Every app is launched by a request, which is a detail.
    var launchReasons: Sentences {
        var found = Sentences()
        if error != nil {
            found.add("it cannot be launched: its manifest has an error")
            return found
        }
        if sockets.contains(where: { $0.problem != nil }) {
            found.add("it is not launched before all its sockets are bound")
        } else if let heldInput {
            found.add("\(heldInput) launches it")
        } else {
            found.add(detail: "only a request launches it")
        }
        found.add(relaunchIn.map { "it is launched again in \(countdown($0))" })
        found.add(launchPostponed.map { "only a user can launch it for \(countdown($0)), because it ended early" })
        found.add(connectionsWaiting.map { "connections have waited for \(countdown($0))" })
        found.add(launchWaiting.map { "it has waited for \(countdown($0)) until other launches are complete" })
        found.add(
            memoryAwaitedBytes.map {
                "it was ended for memory, and is launched again when \(formattedSize($0)) are available"
            })
        return found
    }

    /// `a connection to 127.0.0.1:8080 or /run/app.sock, or a datagram at @app`; `nil`: no socket is held.
    private var heldInput: String? {
        let held = sockets.filter { $0.problem == nil }
        let kinds = [
            ("a connection to ", held.filter { $0.type != "datagram" }),
            ("a datagram at ", held.filter { $0.type == "datagram" }),
        ]
        let parts = kinds.compactMap { words, sockets -> String? in
            guard !sockets.isEmpty else { return nil }
            let shown = sockets.prefix(3).map(\.address).joined(separator: " or ")
            return words + shown + (sockets.count > 3 ? " or \(sockets.count - 3) more" : "")
        }
        return parts.isEmpty ? nil : parts.joined(separator: ", or ")
    }
}

extension InputStatus {
    /// What arrived, without the numbers of descriptors and processes: `a connection from 192.0.2.7:50123`.
    var plain: String {
        var short = self
        (short.bytes, short.isHalfFull, short.isOwn) = (0, nil, nil)
        let details = " (descriptor \(descriptor)" + (pid.map { " of process \($0)" } ?? "") + ")"
        let phrase = short.phrase
        return phrase.hasSuffix(details) ? String(phrase.dropLast(details.count)) : phrase
    }
}

extension DeferredWakeStatus {
    /// `data in a pipe wakes it in 12min: its background time is used up`.
    fileprivate var plain: String {
        "\(input?.plain ?? "a request that it has sent to itself") wakes it in \(countdown(remaining)): \(explanation)"
    }
}

extension SocketStatus {
    /// `127.0.0.1:8080 (stream)`, `80 (stream): bind: Address already in use`.
    var phrase: String {
        let kind = type == "sequentialPacket" ? "sequential packets" : type
        return "\(address) (\(kind))" + (problem.map { ": \($0)" } ?? "")
    }
}
