import LifecycleCore
import Timeline

/// A recording with everything that a timeline shows.
struct Story {
    var recorder: Recorder
    let web = AppID("web")!
    let feed = AppID("feed")!
    let stuck = AppID("stuck")!

    init(start: Duration = .seconds(100)) {
        recorder = Recorder(start: start)
        var worker = AppPolicy()
        worker.wakesOnTraffic = true
        worker.readiness = .notified
        recorder.sizes = [web: 64 << 20, feed: 16 << 20]
        recorder.send(.configuration(.configured(ManagerPolicy())))
        for app in [web, feed, stuck] { recorder.send(.configuration(.registered(app, worker, launches: 0))) }
        recorder.send(.configuration(.started))
        launch(web)
        begin(task: "save", of: web)
        launch(feed)
        recorder.wait(.milliseconds(200))
        end(task: "save", of: web)
        recorder.wait(.seconds(3))
        wake(web)
        recorder.wait(.seconds(3))
        recorder.send(.requested(RequestID(9), feed, .background, by: .app(web)))
        recorder.wait(.seconds(3))
        // It never becomes ready.
        recorder.send(.requested(RequestID(10), stuck, .launch(.background, reason: .user, url: nil)))
        recorder.wait(.seconds(6))
    }

    mutating func launch(_ app: AppID) {
        recorder.send(.requested(RequestID(app == web ? 1 : 2), app, .launch(.foreground, reason: .user, url: nil)))
        if let run = recorder.core.run(of: app) { recorder.send(.run(run, .transition(.ready))) }
    }

    mutating func begin(task: String, of app: AppID) {
        if let run = recorder.core.run(of: app) { recorder.send(.run(run, .task(.began(name: task, owner: 1)))) }
    }

    mutating func end(task: String, of app: AppID) {
        if let run = recorder.core.run(of: app) { recorder.send(.run(run, .task(.ended(name: task)))) }
    }

    mutating func wake(_ app: AppID) {
        guard let run = recorder.core.run(of: app), let attempt = recorder.core.freezeAttempt(ofSuspended: run) else {
            return
        }
        let input = Input(kind: .stream, pid: 1, descriptor: 5, bytes: 12, peer: "192.0.2.7:50123")
        recorder.send(.run(run, .traffic(.inputArrived(attempt: attempt, input))))
        recorder.send(.run(run, .wake(.completed(.newData))))
    }

    /// Available memory falls below the critical threshold, and is normal again after that.
    mutating func runOutOfMemory(available: UInt64 = 10 << 20) {
        for bytes in [available, 900 << 20] {
            recorder.send(.memory(.measured(MemoryReading(total: 1 << 30, available: bytes, sizes: []))))
            recorder.wait(.seconds(2))
        }
    }

    static func timeline(_ files: [[UInt8]]) -> Timeline {
        var builder = TimelineBuilder()
        let player = play(files) { builder.take($0) }
        return builder.finish(problems: player.problems)
    }

    static func play(_ files: [[UInt8]], _ listener: (Player.Step) -> Void = { _ in }) -> Player {
        var player = Player()
        for (index, bytes) in files.enumerated() {
            do {
                player.play(try Segment(bytes, name: "\(index + 1)", version: Recorder.version), listener)
            } catch {
                player.add(problem: error.sentence)
            }
        }
        return player
    }
}
