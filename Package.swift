// swift-tools-version: 6.2
import PackageDescription

/// The settings of every Swift target: Swift 6, warnings as errors, and explicit imports.
let swiftSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// The settings of every C target: GNU extensions, and warnings as errors.
let cSettings: [CSetting] = [
    .define("_GNU_SOURCE"),
    .unsafeFlags(["-Wall", "-Wextra", "-Werror"]),
]

/// A library target. docs/ARCHITECTURE.md describes which targets may depend on which.
func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: swiftSettings)
}

/// A library target that is optimized in debug builds, too: tests play hundreds of thousands of simulated events. Assertions are
/// checked as in any debug build. One process of the compiler compiles it: several would optimize the same functions again and again.
func optimizedLibrary(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(
        name: name, dependencies: dependencies,
        swiftSettings: swiftSettings + [
            .unsafeFlags(
                ["-O", "-assert-config", "Debug", "-driver-batch-count", "1"], .when(configuration: .debug))
        ])
}

/// An executable target.
func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, swiftSettings: swiftSettings)
}

/// A test target. It has no debug information, which takes an eighth of its compilation: the macros name the line of a failure. SwiftPM
/// adds `-g` after the flags of the target, so `-gnone` has to be an option of the compiler proper.
func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
    .testTarget(
        name: name, dependencies: dependencies, exclude: exclude,
        swiftSettings: swiftSettings + [.unsafeFlags(["-Xfrontend", "-gnone"], .when(configuration: .debug))])
}

let package = Package(
    name: "greenroom",
    products: [
        .library(name: "Greenroom", targets: ["Greenroom"]),
        .executable(name: "greenroomd", targets: ["greenroomd"]),
        .executable(name: "greenroomctl", targets: ["greenroomctl"]),
        .executable(name: "greenroom-exporter", targets: ["greenroom-exporter"]),
        .executable(name: "greenroom-top", targets: ["greenroom-top"]),
        .executable(name: "greenroom-run", targets: ["greenroom-run"]),
    ],
    targets: [
        // The lifecycle core, its simulator and the manifest parser. They do no I/O.
        optimizedLibrary("LifecycleCore"),
        optimizedLibrary("LifecycleSimulator", ["Idleness", "LifecycleCore", "LoopPolicy", "Schedule"]),
        library("Manifest", ["LifecycleCore", "Schedule"]),
        // Calendar events, and when the timers of apps are due. No I/O.
        optimizedLibrary("Schedule"),
        // What the waits of a program's threads say about whether it may be frozen. No I/O either.
        optimizedLibrary("Idleness"),

        // The operating system layer: descriptors, errors and sockets; Linux; libsystemd; jansson; ncurses.
        .target(name: "CLinux", cSettings: cSettings),
        .systemLibrary(
            name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(
            name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
        .systemLibrary(
            name: "CMicrohttpd", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        .systemLibrary(name: "CNcurses", providers: [.apt(["libncurses-dev"])]),
        library("Posix", ["CLinux"]),
        library("Linux", ["Idleness", "Posix", "Schedule", "CLinux"]),
        // What of the event loop is decided: the table of its sources, their budgets.
        optimizedLibrary("LoopPolicy"),
        library("Systemd", ["LoopPolicy", "Posix", "CSystemd"]),
        library("JSON", ["Posix", "CJansson"]),
        library("Control", ["Systemd", "JSON"]),
        // The metrics of greenroom-exporter: what is counted, and the text formats. No I/O.
        library("Metrics", ["Control"]),
        // The sentences of what happened, for the log and for pictures of a recording.
        library("Reports", ["LifecycleCore", "Systemd", "Control"]),
        // A recording as lanes, bars and arrows. No I/O.
        library("Timeline", ["LifecycleCore", "JSON", "Control", "Reports"]),

        // The daemon, the app library and the programs.
        library(
            "Daemon",
            [
                "Idleness", "LifecycleCore", "LoopPolicy", "Manifest", "Posix", "Schedule", "Linux", "Systemd", "JSON",
                "Control", "Reports",
            ]),
        .target(name: "CGreenroom", dependencies: ["CSystemd"], cSettings: cSettings),
        library("Greenroom", ["CGreenroom"]),
        program("greenroomd", ["Daemon"]),
        program(
            "greenroom-exporter",
            ["Metrics", "Manifest", "Posix", "Linux", "LoopPolicy", "Systemd", "Control", "CMicrohttpd"]),
        program("greenroom-sim", ["LifecycleCore", "LifecycleSimulator"]),
        program("greenroom-bench", ["LifecycleSimulator", "Posix", "Linux", "Systemd", "JSON", "Control"]),
        program(
            "greenroomctl",
            ["LifecycleCore", "Manifest", "Posix", "Schedule", "Linux", "Systemd", "JSON", "Control", "Timeline"]),
        // The relay of `greenroomctl run` waits as long as the command runs: it is small, and loads no library.
        .executableTarget(
            name: "greenroom-run", cSettings: cSettings,
            linkerSettings: [.unsafeFlags(["-nostartfiles", "-static-executable"])]),
        // A program of its own, so that greenroomctl does not load ncurses.
        program("greenroom-top", ["LifecycleCore", "Posix", "Linux", "Systemd", "Control", "CNcurses"]),

        tests("LifecycleCoreTests", ["LifecycleCore", "TestKit"], exclude: ["Saving/SavedForms"]),
        tests("IdlenessTests", ["Idleness"]),
        tests("ScheduleTests", ["Linux", "Posix", "Schedule", "TestKit"], exclude: ["Fixtures"]),
        tests("SimulatorTests", ["Idleness", "LifecycleCore", "LifecycleSimulator", "LoopPolicy", "TestKit"]),
        // Properties that hold for every manifest. The tests check them on saved inputs, the fuzzer on new ones.
        .target(
            name: "ManifestProperties", dependencies: ["LifecycleCore", "Manifest", "Schedule"],
            path: "Tests/ManifestProperties",
            swiftSettings: swiftSettings),
        tests("ManifestTests", ["LifecycleCore", "Manifest", "ManifestProperties", "Schedule"], exclude: ["Seeds"]),
        .target(
            name: "TestKit", dependencies: ["LoopPolicy", "Posix", "Systemd"], path: "Tests/TestKit",
            swiftSettings: swiftSettings),
        tests("GreenroomTests", ["Greenroom", "TestKit"]),
        // Tests/contract/run and Tests/contract/swift/run play transcripts for these two.
        .executableTarget(
            name: "greenroom-contract", dependencies: ["Greenroom"], path: "Tests/contract/swift",
            exclude: ["run", "transcripts"], swiftSettings: swiftSettings),
        .executableTarget(
            name: "greenroom-chaos", dependencies: ["CGreenroom"], path: "Tests/contract/chaos", cSettings: cSettings),
        .executableTarget(
            name: "greenroom-reader", dependencies: ["Greenroom"], path: "docs/examples/reader/Sources/reader",
            swiftSettings: swiftSettings),
        // Tests/examples/apps runs it.
        .executableTarget(
            name: "greenroom-notebook", dependencies: ["Greenroom"], path: "docs/examples/notebook/Sources/notebook",
            swiftSettings: swiftSettings),
        tests("PosixTests", ["Posix", "TestKit"]),
        tests("LinuxTests", ["Idleness", "Linux", "Posix", "TestKit", "greenroom-testapp"]),
        tests("SystemdTests", ["LoopPolicy", "Systemd", "Posix", "JSON", "TestKit"]),
        tests(
            "ControlTests",
            [
                "greenroomctl", "greenroom-top", "Control", "LoopPolicy", "Posix", "Systemd", "JSON", "LifecycleCore",
                "TestKit", "Timeline",
            ]),
        tests("TimelineTests", ["Timeline", "JSON", "LifecycleCore", "TestKit"]),
        tests("BenchTests", ["greenroom-bench", "JSON"]),
        tests("MetricsTests", ["Metrics", "Control", "TestKit"]),
        tests("TopTests", ["greenroom-top", "greenroomctl", "CNcurses", "Control", "Systemd"]),
        // The daemon tests start the daemon, the command line and a scripted app as processes.
        .executableTarget(name: "greenroom-testapp", path: "Tests/TestApp", cSettings: cSettings),
        tests(
            "DaemonTests",
            [
                "Daemon", "Idleness", "LifecycleCore", "LoopPolicy", "Posix", "Linux", "Systemd", "JSON", "Control",
                "Manifest", "Metrics", "Reports", "Timeline",
                "greenroomd",
                "greenroomctl", "greenroom-exporter", "greenroom-top", "greenroom-run", "greenroom-testapp",
                "greenroom-notebook",
                "greenroom-reader",
                "greenroom-contract",
                "greenroom-chaos",
                "TestKit",
            ]),
    ],
    cLanguageStandard: .gnu17
)

// Only Sources/scripts/fuzz builds this target: it links libFuzzer's runtime, whose debug sections the default linker,
// gold, does not support.
if Context.environment["GREENROOM_FUZZ"] == "1" {
    package.targets.append(
        .executableTarget(
            name: "greenroom-fuzz", dependencies: ["ManifestProperties"], swiftSettings: swiftSettings,
            linkerSettings: [.unsafeFlags(["-use-ld=lld"])]))
}
