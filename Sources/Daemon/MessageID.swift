/// The `MESSAGE_ID` of each kind of journal entry. Scripts and the message catalogue use them, so none is ever changed
/// or reused.
enum MessageID {
    static let stateChanged = "9570bb5ede0f40818b031ee3bb636b62"
    static let deadlineStarted = "b2e8f041bc3247c98ad8196c0f6f3425"
    static let deadlineExtended = "62380c3a24af4bef907dbe3a6b18f93a"
    static let deadlineMet = "218b504928664e65ae7c996202b3a6be"
    static let deadlineCancelled = "aebcf27a57244e98af7f0322063c1ab6"
    static let deadlineMissed = "05bf639d40ac4ba0a3bfbd6f36a5a467"
    static let deadlineDeferred = "43c1e4bbbe9949d58781a688291e9c68"
    static let taskBegan = "06d7c3cd75404db9a5df0f2c2f0a144d"
    static let taskEnded = "077a5abace1b40d7865c2a3b02867d05"
    static let taskRefused = "88c2838559754299b1ef345222cb7e32"
    static let tasksExpiring = "e6f951c7a46a4e1286bbc721c626ff9a"
    static let freezeTimedOut = "d77a7ddf3a7b48aebe516543eda3fe94"
    static let killTakesLong = "89f3ee9cd49d45c3824a40e1face612d"
    static let stoppedItself = "4e3a843b62a84da498444098476ab11f"
    static let wakeCompleted = "47bbec75103948519eb93d0cc8aa999e"
    static let relaunchScheduled = "84bd5abfe894450196dedd988a0f4d70"
    static let memoryLevelChanged = "b91614ff5e754f9895f6100c86572f65"
    static let ended = "cb462029ca494b4da27d0aeb15b48612"
    static let started = "4e3303e702f34e5996bbc3bde971b767"
    static let recovered = "2f1f0d3a6c3f4d0fa7d5a1c8e4b96c71"
    static let stopping = "6f3d8c411e9e46babd4a6195a1442935"
    /// The message bus, the daemon's name on it, and logind.
    static let bus = "7ee37120bca049a3801e585cbc0f052f"
    /// An error or a warning about a manifest or the configuration.
    static let manifest = "a4c46d4b10a040a1b3b4e8ac9f350524"
    /// Something failed, or was refused, and the daemon continues.
    static let warning = "4d84fbea996b4b73843683414b1f6362"
}
