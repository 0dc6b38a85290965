import Glibc
import Posix
import Systemd
import Testing

/// A D-Bus daemon for one test, in a folder of its own.
final class PrivateBus {
    static let isPossible = isInstalled("dbus-daemon")
    static let requirement: Comment = "dbus-daemon is not installed (Debian: dbus-daemon)"

    let folder: TemporaryFolder
    private var pid: pid_t?
    private let silence: SharedDescriptor

    /// - Parameter isRunning: whether the daemon is started at once.
    init(isRunning: Bool = true) throws {
        folder = try TemporaryFolder()
        silence = SharedDescriptor(try Descriptor.open("/dev/null", O_WRONLY))
        let configuration = """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <type>custom</type>
              <listen>\(address)</listen>
              <auth>EXTERNAL</auth>
              <policy context="default">
                <allow send_destination="*" eavesdrop="true"/>
                <allow eavesdrop="true"/>
                <allow own="*"/>
                <deny own="org.example.Forbidden"/>
              </policy>
            </busconfig>
            """
        let file = try #require(fopen(folder.path + "/bus.conf", "w"))
        fputs(configuration, file)
        fclose(file)
        if isRunning { try start() }
    }

    deinit {
        stop()
    }

    var address: String { BusAddress.unix(path: folder.path + "/bus") }

    func start() throws {
        pid = try spawn(["dbus-daemon", "--nofork", "--config-file=\(folder.path)/bus.conf"], output: silence)
    }

    /// Kills the daemon, as in a crash: its socket stays.
    func stop() {
        guard let pid else { return }
        self.pid = nil
        kill(pid, SIGKILL)
        var status: Int32 = 0
        waitpid(pid, &status, 0)
    }
}

/// The exhibit on a bus.
final class BusStage {
    let bus: PrivateBus
    let loop: EventLoop
    let exhibit = Exhibit()
    let objects: BusObjects
    let messageBus: MessageBus
    var ups = 0
    var downs: [String] = []
    var names: [MessageBus.Name] = []

    init(_ bus: PrivateBus, name: String = Exhibit.name, loop: EventLoop? = nil) throws {
        self.bus = bus
        self.loop = try loop ?? EventLoop()
        objects = exhibit.objects()
        messageBus = try MessageBus(loop: self.loop, address: bus.address, name: name, objects: objects)
        messageBus.onUp = { [unowned self] _ in ups += 1 }
        messageBus.onDown = { [unowned self] in downs.append($0) }
        messageBus.onName = { [unowned self] in names.append($0) }
        messageBus.connect()
    }

    /// Runs the loop until this connection owns the name.
    func settle() throws {
        #expect(try loop.serve { self.messageBus.nameState == .owned })
    }

    /// A client on the same loop, once it is connected.
    func client() throws -> BusPeer {
        let client = try BusPeer(loop: loop, busAddress: bus.address)
        #expect(try loop.serve { client.isReady })
        return client
    }

    func ask(
        _ client: BusPeer, _ member: String, _ arguments: [Variant] = [], interface: String = Exhibit.manager,
        path: String = Exhibit.path
    ) throws -> Result<[Variant], BusError> {
        var answer: Result<[Variant], BusError>?
        try client.call(
            Exhibit.name, path: path, interface: interface, member: member, arguments, timeout: testTimeout
        ) { answer = $0 }
        #expect(try loop.serve { answer != nil })
        return try #require(answer)
    }
}
