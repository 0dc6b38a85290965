import CGreenroom
import Glibc

extension App {
    // MARK: Restoration

    /// Saves the restoration state for the next process of the app, instead of the one before.
    ///
    /// - Parameter state: at most 1 MiB.
    /// - Throws: `GreenroomError.refused` with a sentence if it is not kept.
    public func save(_ state: RestorationState) throws(GreenroomError) {
        try call { library in
            state.bytes.withUnsafeBytes { greenroom_save_state(library, $0.baseAddress, $0.count) }
        }
    }

    /// Saves a text as the restoration state, as `save(_:)`.
    public func save(_ text: some StringProtocol) throws(GreenroomError) { try save(RestorationState(text)) }

    /// Saves bytes as the restoration state, as `save(_:)`.
    public func save(bytes: some Sequence<UInt8>) throws(GreenroomError) { try save(RestorationState(bytes: bytes)) }

    /// Returns the restoration state that an earlier process of the app has saved, or `nil` if there is none.
    ///
    /// With a delegate, `run(_:)` does so. A program without one calls it before it asks for events.
    public func restore() throws(GreenroomError) -> RestorationState? {
        try restore { greenroom_restore_state($0, $1, $2) }
    }

    /// Saves the restoration state of a scene, instead of the one before. It is kept beside that of the app until `endScene(_:)`.
    ///
    /// - Parameter state: at most 1 MiB.
    /// - Throws: `GreenroomError.refused` with a sentence if it is not kept.
    public func save(_ state: RestorationState, scene: String) throws(GreenroomError) {
        try call { library in
            state.bytes.withUnsafeBytes { greenroom_save_scene_state(library, scene, $0.baseAddress, $0.count) }
        }
    }

    /// Saves a text as the restoration state of a scene.
    public func save(_ text: some StringProtocol, scene: String) throws(GreenroomError) {
        try save(RestorationState(text), scene: scene)
    }

    /// Returns the restoration state of a scene that an earlier process of the app has saved, or `nil` if there is none.
    public func restore(scene: String) throws(GreenroomError) -> RestorationState? {
        try restore { greenroom_restore_scene_state($0, scene, $1, $2) }
    }

    private func restore(
        _ load:
            @escaping @Sendable (
                OpaquePointer, UnsafeMutablePointer<UnsafeMutableRawPointer?>, UnsafeMutablePointer<Int>
            ) -> Int32
    ) throws(GreenroomError) -> RestorationState? {
        let result = connection.perform { library -> Result<RestorationState?, GreenroomError> in
            Result { () throws(GreenroomError) in
                var data: UnsafeMutableRawPointer?
                var size = 0
                try check(load(library, &data, &size), library)
                guard let data else { return nil }
                defer { free(data) }
                return RestorationState(bytes: UnsafeRawBufferPointer(start: data, count: size))
            }
        }
        return try result.get().get()
    }

    /// Removes the restoration state, so that the next process begins anew.
    public func dropState() throws(GreenroomError) { try call { greenroom_drop_state($0) } }

    /// Saves a picture of the app that is shown while the app is not. Without Greenroom it does nothing.
    ///
    /// - Parameters:
    ///   - image: at most 8 MiB.
    ///   - type: its media type, for example `image/jpeg`, or `text/plain` for UTF-8.
    public func saveSnapshot(
        _ image: some Sequence<UInt8>, type: String = Snapshot.png
    ) throws(GreenroomError) {
        try save(Snapshot(image, type: type))
    }

    /// Saves a snapshot, as `saveSnapshot(_:type:)`.
    public func save(_ snapshot: Snapshot) throws(GreenroomError) {
        try call { library in
            snapshot.bytes.withUnsafeBytes { bytes in
                snapshot.type == Snapshot.png
                    ? greenroom_save_snapshot(library, bytes.baseAddress, bytes.count)
                    : greenroom_save_snapshot_as(library, bytes.baseAddress, bytes.count, snapshot.type)
            }
        }
    }

    /// Saves a picture of a scene, instead of the one before. It is removed when the scene is ended. Without Greenroom it does nothing.
    public func save(_ snapshot: Snapshot, scene: String) throws(GreenroomError) {
        try call { library in
            snapshot.bytes.withUnsafeBytes { bytes in
                greenroom_save_scene_snapshot(library, scene, bytes.baseAddress, bytes.count, snapshot.type)
            }
        }
    }

    // MARK: What the app reports

    /// Sets the text that `greenroomctl status` shows. Does not wait.
    public func setStatus(_ text: String) { connection.report { _ = greenroom_set_status($0, text) } }

    /// Describes the state of the app for its next process, which finds it as `lastSummary`.
    ///
    /// - Parameter text: at most 1 KiB.
    /// - Throws: `GreenroomError.refused` with a sentence if it is not kept.
    public func setSummary(_ text: String) throws(GreenroomError) { try call { greenroom_set_summary($0, text) } }

    /// What the previous process of the app has set with `setSummary(_:)`; `nil` if it has set nothing.
    ///
    /// It is known once the app has started: in `didBecomeActive`, not in `didFinishLaunching`. Waits for greenroomd.
    public var lastSummary: String? {
        get throws(GreenroomError) {
            let result = connection.perform { library -> Result<String?, GreenroomError> in
                Result { () throws(GreenroomError) in
                    var summary: UnsafePointer<CChar>?
                    try check(greenroom_last_summary(library, &summary), library)
                    return summary.map { String(cString: $0) }
                }
            }
            return try result.get().get()
        }
    }

    /// Reports that the app is alive. Does not wait.
    ///
    /// An app whose manifest has a watchdog (`WatchdogSec=`) calls this more often than that time, or it is killed.
    public func heartbeat() { connection.report { _ = greenroom_heartbeat($0) } }

    /// Hints that the app has nothing to do until something arrives (true), or has (false). Does not wait.
    public func setIdle(_ isIdle: Bool = true) { connection.report { _ = greenroom_set_idle($0, isIdle ? 1 : 0) } }

    /// Calls a function of the C library that waits for greenroomd.
    func call(
        _ body: @escaping @Sendable (_ library: OpaquePointer) -> Int32
    ) throws(GreenroomError) {
        let result = connection.perform { library -> Result<Void, GreenroomError> in
            Result { () throws(GreenroomError) in try check(body(library), library) }
        }
        try result.get().get()
    }
}
