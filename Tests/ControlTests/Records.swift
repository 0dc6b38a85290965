import Control
import Systemd

/// Sample records.
enum Records {
    static let time = Timestamp(rfc3339: "2025-11-21T07:12:03.250Z") ?? Timestamp(microseconds: 0)

    static let receipt = make(ReceiptRecord()) {
        $0.id = 12
        $0.app = "photos"
        $0.pid = 4711
        $0.time = time
        $0.state = "launching"
        $0.namespace = "watchdog"
        $0.code = "0x8badf00d"
        $0.explanation = "Killed: exceeded its launch deadline (5s)."
        $0.signal = 9
        $0.coreDumped = false
        $0.wall = .milliseconds(5210)
        $0.cpu = .milliseconds(310)
        $0.memoryBytes = 14_365_491
        $0.deadline = make(DeadlineStatus()) {
            $0.what = "launch"
            $0.allowed = .seconds(5)
            $0.wall = .milliseconds(5020)
            $0.cpu = .milliseconds(300)
        }
        $0.candidates = [candidate("photos", "suspended", 1 << 30), candidate("mail", "background", 1 << 20)]
    }

    static let photos = make(AppStatus()) {
        $0.id = "photos"
        $0.name = "Photos"
        $0.state = "background"
        $0.pid = 4711
        $0.since = time
        $0.memoryBytes = 14_365_491
        $0.tasks = [
            make(TaskStatus()) {
                $0.name = "up\u{1B}[2Jload"
                $0.remaining = .milliseconds(28_200)
                $0.age = .seconds(2)
                $0.owner = 4712
            }
        ]
        $0.deadline = make(DeadlineStatus()) {
            $0.what = "background"
            $0.remaining = .milliseconds(3210)
        }
        $0.launches = 3
        $0.statusText = "busy\nwith \u{202E}things"
        $0.lastReceipt = receipt
    }

    static let mail = make(AppStatus()) {
        $0.id = "org.example.Mail"
        $0.name = "org.example.Mail"
        $0.state = "notRunning"
        $0.since = Timestamp(rfc3339: "2025-11-21T07:00:00Z")
    }

    static let broken = make(AppStatus()) {
        $0.id = "broken"
        $0.name = "broken"
        $0.state = "notRunning"
        $0.error = "broken.app:2:1: error: no such key"
    }

    static let input = make(InputStatus()) {
        $0.kind = "listener"
        $0.peer = "192.0.2.7:50123"
        $0.bytes = 312
        $0.pid = 4711
        $0.descriptor = 5
        $0.at = time
    }

    static let watch = make(WatchStatus()) {
        $0.watched = 12
        $0.unwatched = [
            make(UnwatchedStatus()) {
                $0.what = "socket"
                $0.problem = "notPermitted"
                $0.count = 1
            }
        ]
        $0.thresholdBytes = 64
        $0.thresholdTime = .seconds(30)
    }

    /// A worker that is at work.
    static let worker = make(AppStatus()) {
        $0.id = "worker1"
        $0.name = "worker1"
        $0.state = "background"
        $0.pid = 4711
        $0.since = time
        $0.awake = [
            make(AwakeStatus()) {
                $0.reason = "unwatchedCall"
                $0.explanation = "a thread is in a call: thread 7 (writer) is in write(2)"
                $0.detail = "thread 7 (writer) is in write(2)"
                $0.since = Timestamp(rfc3339: "2025-11-21T07:12:05Z")
            },
            make(AwakeStatus()) {
                $0.reason = "task"
                $0.detail = "upload"
                $0.explanation = "the task 'upload' is open"
            },
        ]
        $0.trafficWakes = 17
        $0.lastInput = input
        $0.launches = 1
    }

    /// The same worker, suspended.
    static let idleWorker = make(worker) {
        $0.state = "suspended"
        $0.awake = []
        $0.watch = watch
        $0.shortestWait = .milliseconds(500)
        $0.timerIn = .seconds(90)
        $0.pulseIn = .seconds(20)
    }

    /// The same worker with held sockets, and not running: the last is one of a template.
    static let heldWorker = make(idleWorker) {
        $0.sockets = [
            SocketStatus(type: "stream", address: "127.0.0.1:8080"),
            SocketStatus(type: "datagram", address: "/run/worker1.sock"),
        ]
        $0.unloadsIn = .seconds(300)
    }

    static let unloadedWorker = make(AppStatus()) {
        $0.id = "worker@42"
        $0.name = "worker@42"
        $0.state = "notRunning"
        $0.since = time
        $0.sockets = [
            SocketStatus(type: "stream", address: "127.0.0.1:8042"),
            SocketStatus(type: "stream", address: "80", problem: "bind: Address already in use"),
        ]
        $0.connectionsWaiting = .seconds(12)
        $0.launchPostponed = .seconds(20)
        $0.template = "worker@"
        $0.isTransient = true
    }

    static let memory = make(MemoryStatus()) {
        $0.level = "warning"
        $0.reason = "pressure"
        $0.totalBytes = 8 << 30
        $0.availableBytes = 2 << 30
        $0.appsBytes = 1 << 30
        $0.budgetBytes = 3 << 30
        $0.containment = "cgroup v2"
    }

    static let limitedMemory = make(MemoryStatus()) {
        $0.level = "critical"
        $0.reason = "available"
        $0.totalBytes = 8 << 30
        $0.availableBytes = 2 << 30
        $0.appsBytes = 1 << 30
        $0.containment = "cgroup v2"
        $0.source = "limit"
        $0.limit = make(MemoryLimitStatus()) {
            $0.group = "/greenroom.slice"
            $0.file = "memory.max"
            $0.totalBytes = 512 << 20
            $0.availableBytes = 16 << 20
            $0.oomKills = 2
        }
        $0.swapTotalBytes = 2 << 30
        $0.swapFreeBytes = 1 << 30
        $0.refaultedBytes = 3 << 20
        $0.perCPUBytes = 12 << 20
        $0.thresholdBytes = 64 << 20
        $0.deficitBytes = 48 << 20
        $0.stalls = make(StallStatus()) {
            $0.path = "/sys/fs/cgroup/greenroom.slice/memory.pressure"
            $0.somePercent = 12.34
            $0.fullPercent = 0.05
        }
        $0.candidates = [("photos", "suspended", 120), ("org.example.Mail", "background", 60)].map { app in
            make(JetsamCandidate()) {
                $0.app = app.0
                $0.state = app.1
                $0.memoryBytes = UInt64(app.2) << 20
            }
        }
    }

    static func done(_ state: String) -> RequestResult { RequestResult(.done, state: state) }

    static let ended = make(RequestResult(.ended, state: "notRunning")) {
        $0.explanation = receipt.explanation
        $0.lastReceipt = receipt
    }

    static func simulated(_ level: String, victim: String? = nil) -> SimulationResult {
        make(SimulationResult()) {
            $0.level = level
            $0.victim = victim
        }
    }

    static func make<Value>(_ value: Value, _ set: (inout Value) -> Void) -> Value {
        var value = value
        set(&value)
        return value
    }

    private static func candidate(_ app: String, _ state: String, _ size: UInt64) -> JetsamCandidate {
        make(JetsamCandidate()) {
            $0.app = app
            $0.state = state
            $0.memoryBytes = size
        }
    }
}
