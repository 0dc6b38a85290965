import Control
import Systemd
import Testing

/// The records of a running daemon, decoded by the types that the command line uses.
@Suite("Records of the daemon")
struct RecordTests {
    private func call<Value: RecordValue>(
        _ daemon: TestDaemon, _ member: String, _ arguments: [Variant] = [], as type: Value.Type = Value.self
    ) throws -> Value {
        try Value(variant: try #require(try daemon.call(member, arguments).first))
    }

    @Test("every answer decodes as its record, and the receipt of an end is the same in all of them")
    func answers() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest(""), "broken": "[App]\nNonsense\n"])
        let options = LaunchOptions().variant
        let launched = try call(daemon, "Launch", [.string("photos"), options], as: RequestResult.self)
        #expect(launched == RequestResult(.done, state: "active"))
        let apps = try call(daemon, "List", as: [AppStatus].self)
        #expect(apps.map(\.id) == ["broken", "photos"])
        #expect(apps[0].error?.contains("broken.app:2") == true && apps[0].since == nil)
        #expect(apps[1].pid == (try daemon.pid("photos")) && apps[1].foreground && apps[1].launches == 1)
        // That of the machine.
        #expect(["normal", "warning", "critical"].contains(try call(daemon, "Pressure", as: MemoryStatus.self).level))
        let reloaded = try call(daemon, "Reload", as: ReloadResult.self)
        #expect(reloaded.errors.count == 1)
        #expect(reloaded.errors.first?.contains("broken.app:2:1: error: ") == true, "\(reloaded.errors)")
        #expect(try call(daemon, "SimulatePressure", [.string("warning")], as: SimulationResult.self).victim == nil)

        let before = Timestamp.now()
        let ended = try call(daemon, "Terminate", [.string("photos"), .bool(false)], as: RequestResult.self)
        let receipt = try #require(ended.lastReceipt)
        #expect(ended.outcome == "ended" && ended.explanation == receipt.explanation)
        #expect((before...Timestamp.now()).contains(receipt.time))
        #expect(try call(daemon, "Receipt", [.uint64(receipt.id)]) == receipt)
        #expect(try call(daemon, "Receipts", [.string(""), .uint32(0)]) == [receipt])
        #expect(try call(daemon, "Status", [.string("photos")], as: AppStatus.self).lastReceipt == receipt)
    }

    @Test("`since` of an app's state is the same in every call")
    func since() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let before = Timestamp.now()
        try daemon.launch("photos")
        let after = Timestamp.now()
        let first = try #require(try call(daemon, "Status", [.string("photos")], as: AppStatus.self).since)
        // Whole milliseconds: the time may be rounded down to just before the call.
        #expect((before - .milliseconds(1)...after).contains(first))
        for _ in 0..<100 {
            #expect(try call(daemon, "Status", [.string("photos")], as: AppStatus.self).since == first)
        }
        #expect(try call(daemon, "List", as: [AppStatus].self).map(\.since) == [first])
    }

    @Test("an event has the previous state, and an end has its receipt as a number")
    func events() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        var events: [LifecycleEvent] = []
        try daemon.launch("photos")
        try daemon.terminate("photos")
        while events.last?.kind != LifecycleEvent.Kind.ended.rawValue {
            let signal = try #require(try daemon.bus.nextSignal(until: EventLoop.now() + .seconds(60)))
            guard signal.member == ControlNames.lifecycleEventSignal else { continue }
            events.append(try LifecycleEvent(variant: try #require(signal.arguments.first)))
        }
        let changes = events.filter { $0.kind == LifecycleEvent.Kind.stateChanged.rawValue }
        #expect(changes.prefix(3).map(\.previousState) == ["notRunning", "launching", "inactive"])
        #expect(changes.prefix(3).map(\.state) == ["launching", "inactive", "active"])
        #expect(zip(events, events.dropFirst()).allSatisfy { $0.time <= $1.time })
        let deadline = events.first { $0.kind == LifecycleEvent.Kind.deadlineStarted.rawValue }?.deadline
        #expect(deadline?.what == "launch" && deadline?.allowed != nil)
        let receipt = try call(daemon, "Receipts", [.string("photos"), .uint32(1)], as: [ReceiptRecord].self)
        #expect(events.last?.receipt == receipt.last?.id)
    }

    @Test("a refusal names the request and the reason")
    func refusals() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        func message(_ member: String, _ arguments: [Variant]) throws -> String? {
            do {
                _ = try daemon.call(member, arguments)
                return nil
            } catch let error as BusError {
                return error.message
            }
        }
        let photos = Variant.string("photos")
        #expect(try message("Interrupt", [photos]) == "Cannot interrupt 'photos': it is not running.")
        #expect(try message("Background", [photos]) == "Cannot move 'photos' to the background: it is not running.")
        try daemon.launch("photos")
        #expect(try message("Resume", [photos]) == "Cannot resume 'photos': it is not interrupted.")
        #expect(
            try message("Push", [photos, .string("")])
                == "Cannot push to 'photos': its manifest does not declare BackgroundModes=push.")
        #expect(
            try message("Launch", [photos, .dictionary([("background", .string("yes"))])])
                == "Invalid launch options: key 'background': expected b, found s.")
        #expect(
            try message("Launch", [photos, .dictionary([("url", .string("x:y")), ("urgent", .bool(true))])])
                == "Unknown option 'urgent'; expected background, reason, url, environment.")
        _ = try daemon.ask("Background", "photos")
        try daemon.waitUntil("photos", is: "suspended")
        #expect(
            try message("Resume", [photos])
                == "Cannot resume 'photos': it is suspended, not interrupted; use 'activate'.")
        #expect(try message("Receipt", [.uint64(99)]) == "There is no receipt 99; the last 1000 are kept.")
    }
}
