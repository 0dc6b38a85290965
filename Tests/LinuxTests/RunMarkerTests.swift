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

@Suite("Names of groups")
struct LeafNameTests {
    @Test(
        "the name of a group has the app and the run",
        arguments: ["photos.run3", "a.b_1.run12_7", "x.run0.run18446744073709551615"])
    func roundTrip(text: String) throws {
        let name = try #require(CgroupLeaf.Name(text))
        #expect(name.text == text)
    }

    @Test("the parts of a name")
    func parts() throws {
        let name = try #require(CgroupLeaf.Name("a.run1.run12_7"))
        #expect(name.app == "a.run1" && name.run == 12 && name.attempt == 7)
    }

    @Test(
        "a group of another name is none of an app",
        arguments: [
            "supervisor", ".run3", "photos.run", "photos.run_1", "photos.run03", "photos.run3_", "photos.run3_0",
            "photos.run3_x",
        ])
    func others(text: String) { #expect(CgroupLeaf.Name(text) == nil) }
}
