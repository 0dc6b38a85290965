import Testing

@testable import Linux

@Suite("Markers of runs")
struct RunMarkerTests {
    @Test(
        "a marker names the app and the run, also if the ID of the app contains colons",
        arguments: ["photos", "worker@a:b:7", "a@:::"])
    func roundTrip(app: String) throws {
        let value = RunMarker.value("greenroom-1f", app, 42, random: 255)
        let marker = try #require(RunMarker(value, of: "greenroom-1f"))
        #expect(marker.app == app && marker.run == 42)
        #expect(RunMarker(value, of: "greenroom") == nil)
        #expect(RunMarker(value, of: "greenroom-1") == nil)
    }

    @Test(
        "a text that is no marker is none",
        arguments: ["", "g", "g:", "g:a", "g:a:1", "g:a:b:c", "g:a:-1:f", "x:a:1:f"])
    func invalid(text: String) { #expect(RunMarker(text, of: "g") == nil) }
}
