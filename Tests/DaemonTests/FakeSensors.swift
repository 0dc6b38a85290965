import Systemd
import Testing

/// UPower and iio-sensor-proxy, as far as the daemon reads them.
final class FakeSensors {
    private static let device = "/org/freedesktop/UPower/devices/DisplayDevice"
    private static let sensors = "/net/hadess/SensorProxy"

    private let upower: MessageBus
    private let proxy: MessageBus
    private let objects = (BusObjects(), BusObjects())
    private var percent = 80.0
    private var orientation = "normal"
    /// The calls that claim or release a sensor.
    private(set) var claims: [String] = []
    /// How often the properties of the battery were read.
    private(set) var reads = 0

    init(_ stage: BusStage) throws {
        let address = stage.bus.address
        upower = try MessageBus(
            loop: stage.loop, address: address, name: "org.freedesktop.UPower", objects: objects.0)
        proxy = try MessageBus(loop: stage.loop, address: address, name: "net.hadess.SensorProxy", objects: objects.1)
        objects.0.add(
            at: Self.device,
            [
                BusInterface(
                    "org.freedesktop.UPower.Device",
                    properties: [
                        BusProperty("IsPresent", "b") { _ in .bool(true) },
                        BusProperty("Percentage", "d") { [unowned self] _ in
                            reads += 1
                            return .double(percent)
                        },
                        BusProperty("State", "u") { _ in .uint32(2) },
                    ])
            ])
        let methods = ["ClaimAccelerometer", "ReleaseAccelerometer", "ClaimProximity", "ReleaseProximity"]
        objects.1.add(
            at: Self.sensors,
            [
                BusInterface(
                    "net.hadess.SensorProxy",
                    methods: methods.map { name in
                        BusMethod(name, access: .anyone) { [unowned self] call in
                            claims.append(name)
                            call.reply([])
                        }
                    },
                    properties: [
                        BusProperty("HasAccelerometer", "b") { _ in .bool(true) },
                        BusProperty("AccelerometerOrientation", "s") { [unowned self] _ in .string(orientation) },
                        BusProperty("ProximityNear", "b") { _ in .bool(false) },
                    ])
            ])
        upower.connect()
        proxy.connect()
        try stage.serve("the names of the fakes") {
            self.upower.nameState == .owned && self.proxy.nameState == .owned
        }
    }

    var haveNames: Bool { upower.nameState == .owned && proxy.nameState == .owned }

    func setPercent(_ percent: Double) throws {
        self.percent = percent
        try upower.peer?.emitPropertiesChanged(
            path: Self.device, interface: "org.freedesktop.UPower.Device", ["Percentage"])
    }

    func setOrientation(_ orientation: String) throws {
        self.orientation = orientation
        try proxy.peer?.emitPropertiesChanged(
            path: Self.sensors, interface: "net.hadess.SensorProxy", ["AccelerometerOrientation"])
    }
}
