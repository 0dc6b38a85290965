package import Control

/// The fixed `MESSAGE_ID` of each kind of journal entry. Scripts and the message catalogue rely on them, so an ID is never
/// changed or used for another kind.
package enum MessageID {
    package static func of(_ kind: LifecycleEvent.Kind) -> String {
        switch kind {
        case .stateChanged: "9570bb5ede0f40818b031ee3bb636b62"
        case .deadlineStarted: "b2e8f041bc3247c98ad8196c0f6f3425"
        case .deadlineExtended: "62380c3a24af4bef907dbe3a6b18f93a"
        case .deadlineMet: "218b504928664e65ae7c996202b3a6be"
        case .deadlineCancelled: "aebcf27a57244e98af7f0322063c1ab6"
        case .deadlineMissed: "05bf639d40ac4ba0a3bfbd6f36a5a467"
        case .deadlineDeferred: "43c1e4bbbe9949d58781a688291e9c68"
        case .taskBegan: "06d7c3cd75404db9a5df0f2c2f0a144d"
        case .taskEnded: "077a5abace1b40d7865c2a3b02867d05"
        case .taskRefused: "88c2838559754299b1ef345222cb7e32"
        case .modeBegan: "1908e7a06325423dad8dfc699b03644c"
        case .modeEnded: "cfec5b91ac5f4301a66acb9c0cc24b51"
        case .sceneChanged: "5b0e8f7a2c9d4b61a3f4e1c8d7960b52"
        case .tasksExpiring: "e6f951c7a46a4e1286bbc721c626ff9a"
        case .taskProgress: "5e2c90d7b1a84f36a0c7d4e86b19f3a2"
        case .freezeTakesLong: "d77a7ddf3a7b48aebe516543eda3fe94"
        case .killTakesLong: "89f3ee9cd49d45c3824a40e1face612d"
        case .stoppedItself: "4e3a843b62a84da498444098476ab11f"
        case .wakeCompleted: "47bbec75103948519eb93d0cc8aa999e"
        case .relaunchScheduled: "84bd5abfe894450196dedd988a0f4d70"
        case .backgroundTimeUsedUp: "5d0c4a9e37f14b6c8a21be6f90d4c7e3"
        case .memoryAwaited: "20e377df24964a7e8fccf8672d3c97d5"
        case .inputArrived: "7af908fcc1e44a7ebe3e18f2756ca4a1"
        case .inputNotWatched: "0cf7331095764ad9bdf28de9fb906dd3"
        case .wokenTooOften: "f58bffeb8c814b2d8c9042ee0c1da7b6"
        case .locksHeld: "eb30ecfc997c4cc39cb86b5f911baacc"
        case .cpuUseHigh: "6c2b01a6b7224e43b182f5564be0eec1"
        case .cpuThrottled: "9395c7a2ae7546d3a8967899ffb33413"
        case .cpuThrottleEnded: "c9657c5ca54c4998b5e0ae57255c1956"
        case .connectionsRejected: "5c4f2a0f6d3b4f5c9c7a3f1f4d1be8a2"
        case .wouldSuspend: "2f0e6c1b7d5a4f7d9a8b3c4e5f60718a"
        case .wouldResume: "8c1d9e7a4b3f4c0e9d6a5b2f1e0c3d47"
        case .hookFailed: "3b1f7c5e9a2d4f6c8e07b4d1a95c62f8"
        case .memoryReclaimed: "6f0b7c1de2f845c5a2d1953e08c4b7aa"
        case .hookKilled: "d04e8a6f2b7141c39c5f60e7183ab9d2"
        case .suspensionRefused: "7c96d2e1f0ab4385b2148f5a6cd3907e"
        case .memoryLevelChanged: "b91614ff5e754f9895f6100c86572f65"
        case .ended: "cb462029ca494b4da27d0aeb15b48612"
        }
    }

    // MARK: The daemon itself

    package static let started = "4e3303e702f34e5996bbc3bde971b767"
    package static let recovered = "2f1f0d3a6c3f4d0fa7d5a1c8e4b96c71"
    package static let stopping = "6f3d8c411e9e46babd4a6195a1442935"
    /// The message bus, the bus name, and logind.
    package static let bus = "7ee37120bca049a3801e585cbc0f052f"
    /// An error or a warning in a manifest or in greenroom.conf.
    package static let manifest = "a4c46d4b10a040a1b3b4e8ac9f350524"
    /// An instance of a template was created or removed.
    package static let instance = "0f1d5b6a0b2c4e0c9e55a1e6c2f7d3b4"
    /// A warning: the system or the daemon refused something, and the daemon continues.
    package static let warning = "4d84fbea996b4b73843683414b1f6362"
}
