/// Everything that can happen, as the daemon reports it to the core. Cases are named in the past tense. The large ones are on the
/// heap, so that every event is small to pass.
///
/// Each topic has its events in a file of its folder, with the methods that handle them and their saved form.
package enum Event: Hashable, Sendable {
    /// Something happened to one run of one app. Ignored once that run is over.
    case run(RunID, RunEvent)

    case configuration(ConfigurationEvent)
    /// This daemon recovered the state of an instance that died. Comes before any other event.
    case recovered

    // MARK: Requests

    case requested(RequestID, AppID, Request, by: Requester = .user)
    /// The requester disconnected. The request is carried out all the same. If it was `interruptWhileConnected` and was
    /// answered already, the interruption ends.
    case requestAbandoned(RequestID)
    /// All apps are to end. `immediately`: without notice.
    case shutdownRequested(immediately: Bool)

    // MARK: The machine

    case absence(AbsenceEvent)
    /// The instant of `LifecycleCore.nextDeadline` was reached.
    case deadlineReached
    case memory(MemoryEvent)

    // MARK: Held sockets

    /// A connection or a datagram waits at a socket that the daemon holds for the app (L29). Comes once for each
    /// `SocketEffect.watch`. `input.pid` is 0, `input.descriptor` the number that the app gets for the socket (3 is the first),
    /// and `input.peer` the address of the socket.
    indirect case socketsReady(AppID, Input)

    // MARK: Timers

    /// Something happened to the timers of the app (L30).
    indirect case timer(AppID, TimerEvent)

    // MARK: Changes outside the apps

    /// A source of notifications has read what the machine is like now, or reports a moment (L33). It may have been read before.
    /// `of`: the app that it concerns; `nil`: all that want the kind.
    indirect case observed(Notification, of: AppID? = nil)
}

extension Event {
    /// The run that the event is about, if it is about one.
    package var run: RunID? {
        if case .run(let run, _) = self { run } else { nil }
    }
}

/// What can happen to one run, by topic: outcomes of effects, and what the app's processes say.
package enum RunEvent: Hashable, Sendable {
    case process(ProcessEvent)
    case transition(TransitionEvent)
    case deadline(DeadlineEvent)
    case watchdog(WatchdogEvent)
    case suspension(SuspensionEvent)
    case memory(RunMemoryEvent)
    case traffic(TrafficEvent)
    case processor(ProcessorEvent)
    /// The commands of the hook with this number ended, or the next daemon cannot find out how.
    case hookEnded(number: Int, HookOutcome)
    case task(TaskEvent)
    case mode(ModeEvent)
    case scene(SceneEvent)
    case wake(WakeEvent)
    case connection(ConnectionEvent)
}

/// The origin of a request (L53): a request is a user's if it comes from outside every app.
package enum Requester: Hashable, Sendable {
    case user
    /// A process of an app. `nil`: the app is not known.
    case app(AppID?)
}

/// What a client can ask of an app.
package enum Request: Hashable, Sendable {
    /// `environment`: variables for this launch alone, as `NAME=value`.
    indirect case launch(LaunchState, reason: LaunchReason, url: String?, environment: [String] = [])
    case activate
    case background
    /// L13: an interruption begins.
    case interrupt
    /// L13: an interruption begins. It ends with the connection of the requester at the latest (`requestAbandoned`).
    case interruptWhileConnected
    /// L13: an interruption ends.
    case endInterruption
    /// L46.
    case terminate
    /// L42: the user removed it.
    case remove
    /// L30.
    case push(payload: String)
    /// L31.
    case send(Notification)
    /// L8: brings the app to the foreground, or launches it there, and gives it the URL.
    case open(url: String)
    /// L21: a user wants the tasks of this name to end.
    case cancelTask(name: String)
    /// L34: of one of its scenes.
    case scene(SceneID, SceneRequest)
}
