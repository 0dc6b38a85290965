/// The kinds of events that an app can get over its connection, in the order of DBUS.md. The raw values are words of
/// org.greenroom.Self1.
package enum EventKind: String, CaseIterable, Hashable, Sendable {
    case openURL, didBecomeActive, willResignActive, willEnterForeground, didEnterBackground, willTerminate
    case memoryWarning, tasksExpiring, push, wake, notification, willSuspend, didResume, scene, takeSnapshot
    case takeSceneSnapshot, didDiscardScenes, withdraw
}
