/// The families of metrics that greenroom-exporter serves. docs/METRICS.md has the same table; a test compares them.
package enum Metric: String, CaseIterable, Sendable {
    case up = "greenroom_up"
    case apps = "greenroom_apps"
    case launchDuration = "greenroom_app_launch_duration_seconds"
    case suspendDuration = "greenroom_app_suspend_duration_seconds"
    case wakeDuration = "greenroom_app_wake_duration_seconds"
    case suspendedSeconds = "greenroom_app_suspended_seconds"
    case wakes = "greenroom_app_wakes"
    case footprint = "greenroom_app_memory_footprint_bytes"
    case resident = "greenroom_app_memory_resident_bytes"
    case swapped = "greenroom_app_memory_swapped_bytes"
    case saved = "greenroom_app_memory_saved_bytes"
    case deadlinesMissed = "greenroom_app_deadlines_missed"
    case deadlineMargin = "greenroom_app_deadline_margin_seconds"
    case kills = "greenroom_app_kills"
    case hookFailures = "greenroom_app_hook_failures"
    case killToFree = "greenroom_app_kill_to_free_seconds"
    case memoryLevel = "greenroom_memory_level"
    case memoryAvailable = "greenroom_memory_available_bytes"
    case memoryOfApps = "greenroom_memory_apps_bytes"
    case loopTurns = "greenroom_loop_turns"
    case longestTurn = "greenroom_loop_longest_turn_seconds"
    case eventGaps = "greenroom_exporter_event_gaps"
    case appsInOther = "greenroom_exporter_apps_in_other"
    case queryDuration = "greenroom_exporter_query_duration_seconds"

    package enum Kind: String, Sendable { case counter, gauge, histogram }

    package struct Description: Sendable {
        package let kind: Kind
        package let labels: [String]
        package let help: String
    }

    package var description: Description {
        switch self {
        case .up: gauge([], "Whether greenroomd has answered: 1, otherwise 0.")
        case .apps: gauge(["state"], "Apps in each state.")
        case .launchDuration: histogram(["outcome"], "From the start of a launch until the app was ready.")
        case .suspendDuration: histogram(["outcome"], "From the freeze until all processes of the app were frozen.")
        case .wakeDuration: histogram(["outcome"], "From the thaw until the app ran again.")
        case .suspendedSeconds: counter(["app"], "How long the app was suspended.")
        case .wakes: counter(["app", "reason"], "How often the suspended app was woken.")
        case .footprint: gauge(["app"], "What ending the app gives back, in RAM and in swap.")
        case .resident: gauge(["app"], "What of the app is in RAM, with mapped pages of files.")
        case .swapped: gauge(["app"], "What of the app is in swap.")
        case .saved:
            gauge(["app"], "RAM that the app does not take while it is suspended, or after it was ended for memory.")
        case .deadlinesMissed: counter(["app", "deadline"], "Deadlines that the app missed.")
        case .deadlineMargin: histogram(["deadline"], "What was left of a deadline when it was met.")
        case .kills: counter(["app", "reason"], "How often the app was killed.")
        case .hookFailures:
            counter(["app", "reason"], "How often a command of ExecBeforeSuspend= and similar settings failed.")
        case .killToFree: histogram([], "From SIGKILL until no process of the app was left.")
        case .memoryLevel: gauge([], "The memory level: 0 normal, 1 warning, 2 critical.")
        case .memoryAvailable: gauge([], "Memory that programs can allocate.")
        case .memoryOfApps: gauge([], "Memory of all apps.")
        case .loopTurns: counter([], "Turns of the event loop of greenroomd.")
        case .longestTurn: gauge([], "The longest turn of the event loop since greenroomd was started.")
        case .eventGaps: counter([], "How often events of greenroomd were missed.")
        case .appsInOther: gauge([], "Apps whose samples are summed with app=\"(other)\".")
        case .queryDuration: gauge([], "How long greenroomd took for its last answer to the exporter.")
        }
    }

    private func gauge(_ labels: [String], _ help: String) -> Description {
        Description(kind: .gauge, labels: labels, help: help)
    }

    private func counter(_ labels: [String], _ help: String) -> Description {
        Description(kind: .counter, labels: labels, help: help)
    }

    private func histogram(_ labels: [String], _ help: String) -> Description {
        Description(kind: .histogram, labels: labels, help: help)
    }

    /// The unit of OpenMetrics, which is the end of the name; `nil`: the value counts something.
    package var unit: String? { ["seconds", "bytes"].first { rawValue.hasSuffix("_" + $0) } }

    /// The name of a sample that is no bucket, sum or count.
    package var sampleName: String { description.kind == .counter ? rawValue + "_total" : rawValue }
}
