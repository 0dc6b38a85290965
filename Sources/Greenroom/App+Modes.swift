import CGreenroom

/// What an app does in the background for as long as it lasts, as its manifest declares (`BackgroundModes=`).
public enum BackgroundMode: String, CaseIterable, Sendable {
    case audio, recording, call, location, accessory, processing
}

extension App {
    /// Begins a background mode: the app is not suspended until `endMode(_:)`.
    ///
    /// A mode is on or off for the whole app, however often it is begun. Unlike a background task it has no time limit. Without Greenroom
    /// nothing happens.
    ///
    /// - Throws: `GreenroomError.refused` with a sentence if the manifest does not declare the mode.
    public func beginMode(_ mode: BackgroundMode) throws(GreenroomError) {
        try call { greenroom_begin_mode($0, mode.rawValue) }
    }

    /// Ends a background mode. It is no error to end one that is not on.
    public func endMode(_ mode: BackgroundMode) throws(GreenroomError) {
        try call { greenroom_end_mode($0, mode.rawValue) }
    }
}
