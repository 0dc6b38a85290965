// swift-tools-version: 6.2
import PackageDescription

/// What every room is built with: Swift 6, warnings as errors, and imports that say what they use.
let house: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// For C files: GNU names, and warnings that stop the build.
let houseC: [CSetting] = [
    .define("_GNU_SOURCE"),
    .unsafeFlags(["-Wall", "-Wextra", "-Werror"]),
]

/// A room: a library target whose doors are its dependencies (docs/ARCHITECTURE.md).
func room(_ name: String, _ doors: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: doors, swiftSettings: house)
}

func program(_ name: String, _ doors: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: doors, swiftSettings: house)
}

func tests(_ name: String, _ doors: [Target.Dependency], exclude: [String] = []) -> Target {
    .testTarget(name: name, dependencies: doors, exclude: exclude, swiftSettings: house)
}

let package = Package(
    name: "greenroom",
    products: [
        .library(name: "Greenroom", targets: ["Greenroom"]),
        .executable(name: "greenroomd", targets: ["greenroomd"]),
        .executable(name: "greenroomctl", targets: ["greenroomctl"]),
    ],
    targets: [
        // The core and what decides with it: no I/O.
        room("LifecycleCore"),
        room("LifecycleSimulator", ["LifecycleCore"]),
        room("Manifest", ["LifecycleCore"]),

        // The hands.
        .target(name: "CLinux", cSettings: houseC),
        .systemLibrary(
            name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(
            name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
        // Descriptors, errors and sockets: what Linux and Systemd share.
        room("Posix", ["CLinux"]),
        room("Linux", ["Posix", "CLinux"]),
        room("Systemd", ["Posix", "CSystemd"]),
        room("JSON", ["CJansson"]),
        room("Control", ["Systemd", "JSON"]),

        // The house.
        room("Daemon", ["LifecycleCore", "Manifest", "Posix", "Linux", "Systemd", "JSON", "Control"]),
        room("Greenroom", ["Systemd"]),
        program("greenroomd", ["Daemon"]),
        program("greenroom-sim", ["LifecycleCore", "LifecycleSimulator"]),
        program("greenroom-bench", ["Posix", "Linux", "Systemd", "JSON", "Control"]),
        program("greenroomctl", ["LifecycleCore", "Manifest", "Systemd", "JSON", "Control"]),

        tests("LifecycleCoreTests", ["LifecycleCore"]),
        tests("SimulatorTests", ["LifecycleCore", "LifecycleSimulator"]),
        // What must hold of any manifest: for the tests' seeds, and for the fuzzer.
        .target(
            name: "ManifestProperties", dependencies: ["LifecycleCore", "Manifest"], path: "Tests/ManifestProperties",
            swiftSettings: house),
        tests("ManifestTests", ["LifecycleCore", "Manifest", "ManifestProperties"], exclude: ["Seeds"]),
        .target(name: "TestKit", path: "Tests/TestKit", swiftSettings: house),
        tests("PosixTests", ["Posix", "TestKit"]),
        tests("LinuxTests", ["Linux", "Posix", "TestKit"]),
        tests("SystemdTests", ["Systemd", "Posix", "JSON", "TestKit"]),
        tests("ControlTests", ["greenroomctl", "Control", "Posix", "Systemd", "JSON", "LifecycleCore", "TestKit"]),
        // A scripted app, and the daemon itself: what the daemon's tests run for real.
        .executableTarget(name: "greenroom-testapp", path: "Tests/TestApp", cSettings: houseC),
        tests(
            "DaemonTests",
            [
                "Daemon", "LifecycleCore", "Posix", "Linux", "Systemd", "JSON", "Control", "Manifest", "greenroomd",
                "greenroomctl", "greenroom-testapp", "TestKit",
            ]),
    ],
    cLanguageStandard: .gnu17
)

// libFuzzer's runtime: only Sources/scripts/fuzz builds it. gold, the default, fails on the runtime's debug sections.
if Context.environment["GREENROOM_FUZZ"] == "1" {
    package.targets.append(
        .executableTarget(
            name: "greenroom-fuzz", dependencies: ["ManifestProperties"], swiftSettings: house,
            linkerSettings: [.unsafeFlags(["-use-ld=lld"])]))
}
