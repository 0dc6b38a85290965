import Glibc
import Linux
import Systemd

/// systemd on its private socket, with the methods by which a service finds the job of its SIGTERM
/// (org.freedesktop.systemd1(5)). Calls are answered only in `serve`.
final class FakeSystemd {
    private static let unit = "/org/freedesktop/systemd1/unit/greenroom_2eservice"
    private static let job = "/org/freedesktop/systemd1/job/7"

    /// The `XDG_RUNTIME_DIR` of the daemon that connects to it.
    let runtime: String
    private let loop: EventLoop
    private let server: BusServer
    /// The process whose unit was requested.
    private(set) var asked: [UInt32] = []

    /// - Parameter jobType: of the running job; `nil`: there is none.
    init(in folder: String, jobType: String?) throws {
        runtime = folder
        loop = try EventLoop()
        try createDirectories(at: folder + "/systemd")
        let objects = BusObjects()
        let box = WeakSystemd()
        objects.add(
            at: "/org/freedesktop/systemd1",
            [
                BusInterface(
                    "org.freedesktop.systemd1.Manager",
                    methods: [
                        BusMethod("GetUnitByPID", in: "u", out: "o", access: .anyone) { call in
                            if case .uint32(let pid)? = call.arguments.first { box.systemd?.asked.append(pid) }
                            call.reply([.objectPath(Self.unit)])
                        }
                    ])
            ])
        objects.add(
            at: Self.unit,
            [
                BusInterface(
                    "org.freedesktop.systemd1.Unit",
                    properties: [
                        BusProperty("Job", "(uo)", .constant) { _ in
                            .structure([.uint32(jobType == nil ? 0 : 7), .objectPath(jobType == nil ? "/" : Self.job)])
                        }
                    ])
            ])
        objects.add(
            at: Self.job,
            [
                BusInterface(
                    "org.freedesktop.systemd1.Job",
                    properties: [BusProperty("JobType", "s", .constant) { _ in .string(jobType ?? "") }])
            ])
        server = try BusServer(
            loop: loop, path: folder + "/systemd/private", names: ["org.freedesktop.systemd1"], objects: objects)
        box.systemd = self
    }

    private final class WeakSystemd { weak var systemd: FakeSystemd? }

    /// Serves calls until the daemon has ended.
    func serve(until daemon: TestDaemon) throws {
        let deadline = loop.now() + .seconds(60)
        while try !daemon.process.hasEnded() {
            guard loop.now() < deadline else { throw TestFailure("the daemon did not end") }
            try loop.runOnce(timeout: .milliseconds(20))
        }
    }
}
