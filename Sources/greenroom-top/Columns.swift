import Control

/// The columns of the table.
enum Column: CaseIterable {
    case app, state, pid, memory, resident, swapped, saved, cpu, wakes, tasks, left, waits

    var heading: String {
        switch self {
        case .app: "APP"
        case .state: "STATE"
        case .pid: "PID"
        case .memory: "MEMORY"
        case .resident: "RES"
        case .swapped: "SWAP"
        case .saved: "SAVED"
        case .cpu: "CPU%"
        case .wakes: "WAKES"
        case .tasks: "TASKS"
        case .left: "LEFT"
        case .waits: "WAITS FOR"
        }
    }

    /// The key that sorts by the column.
    var key: SortKey? {
        switch self {
        case .app: .name
        case .state: .state
        case .memory: .memory
        case .resident: .resident
        case .swapped: .swapped
        case .saved: .saved
        case .cpu: .cpu
        case .wakes: .wakes
        case .left: .left
        case .pid, .tasks, .waits: nil
        }
    }

    /// The width. `terminating`, `1023.9M`, the largest pid of Linux (4194304), `9min 59s`. `nil`: what the others leave.
    private var width: Int? {
        switch self {
        case .state: 11
        case .pid, .memory, .resident, .swapped, .saved: 7
        case .cpu, .wakes, .tasks: 5
        case .left: 8
        case .app, .waits: nil
        }
    }

    var isRight: Bool {
        switch self {
        case .pid, .memory, .resident, .swapped, .saved, .cpu, .wakes, .tasks, .left: true
        case .app, .state, .waits: false
        }
    }

    /// The widest and the narrowest name of an app; a longer one is cut.
    static let widestName = 40
    private static let narrowestName = 8

    /// The columns that fit into a width, each with its own width. Where it is narrow, those that say least about an app are
    /// left out first; the name and the state are cut last.
    ///
    /// - Parameter name: the width of the longest name.
    static func layout(_ columns: Int, name: Int) -> [(column: Column, width: Int)] {
        let wanted = min(max(name, narrowestName), widestName)
        var chosen: [Column] = [.app, .state]
        // What the app waits for has no use below some width, and a name is cut before columns are left out.
        let narrowest = 14
        var used = min(wanted, 20) + 12
        for (column, width) in [
            (Column.left, 8), (.waits, narrowest), (.memory, 7), (.cpu, 5), (.swapped, 7), (.wakes, 5), (.tasks, 5),
            (.pid, 7), (.resident, 7), (.saved, 7),
        ] where used + 1 + width <= columns {
            // More numbers are shown only where the text keeps half as much again.
            if [.tasks, .pid].contains(column), columns < 100 { continue }
            if [.resident, .saved].contains(column), columns < 120 { continue }
            chosen.append(column)
            used += 1 + width
        }
        let order = allCases.filter { chosen.contains($0) }
        let fixed = order.compactMap(\.width).reduce(0, +) + order.count - 1
        let free = max(0, columns - fixed)
        let text = chosen.contains(.waits) ? narrowest : 0
        let app = max(min(wanted, free - text), min(narrowestName, free))
        return order.map { ($0, $0 == .app ? app : $0.width ?? max(0, free - app)) }
    }

    func text(_ app: AppRow, at now: Duration) -> String {
        let status = app.status
        switch self {
        case .app: return status.id
        case .state: return status.state
        case .pid: return status.pid.map { String($0) } ?? ""
        case .memory: return app.isRunning ? formattedSize(status.memoryBytes) : ""
        case .resident: return app.isRunning ? status.residentBytes.map(formattedSize) ?? "" : ""
        case .swapped: return Self.size(status.swappedBytes)
        case .saved: return Self.size(status.savedBytes)
        case .cpu: return app.processor.map(Self.percent) ?? ""
        case .wakes: return status.trafficWakes.flatMap { $0 > 0 ? String($0) : nil } ?? ""
        case .tasks: return status.tasks.isEmpty ? "" : String(status.tasks.count)
        case .left: return app.nearestEnd.map { countdown($0 - now) } ?? ""
        case .waits: return app.waits(at: now)
        }
    }

    /// Nothing for 0.
    private static func size(_ bytes: UInt64?) -> String { bytes.flatMap { $0 > 0 ? formattedSize($0) : nil } ?? "" }

    /// `0.3`, `12.0`, `250`: percent of one processor.
    private static func percent(_ share: Double) -> String {
        let tenths = Int((min(share, 1000) * 1000).rounded())
        return tenths < 1000 ? "\(tenths / 10).\(tenths % 10)" : String(tenths / 10)
    }

    func style(_ app: AppRow) -> Style {
        switch self {
        case .app: app.status.error == nil ? .bold : .red
        case .state: Style(state: app.status.state)
        case .waits where app.status.error != nil: .red
        default: .plain
        }
    }
}
