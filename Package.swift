// swift-tools-version: 6.2
import PackageDescription

/// The settings of every Swift target: Swift 6, warnings are errors, explicit imports.
let swiftSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// The settings of C targets: GNU names, warnings are errors.
let cSettings: [CSetting] = [
    .define("_GNU_SOURCE"),
    .unsafeFlags(["-Wall", "-Wextra", "-Werror"]),
]

/// A library target with its dependencies (docs/ARCHITECTURE.md).
func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: swiftSettings)
}

func program(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .executableTarget(name: name, dependencies: dependencies, swiftSettings: swiftSettings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
    .testTarget(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: swiftSettings)
}

let package = Package(
    name: "greenroom",
    products: [
        .library(name: "Greenroom", targets: ["Greenroom"]),
        .executable(name: "greenroomd", targets: ["greenroomd"]),
        .executable(name: "greenroomctl", targets: ["greenroomctl"]),
    ],
    targets: [
        // The core and its parsers and simulator: no I/O.
        library("LifecycleCore"),
        library("LifecycleSimulator", ["LifecycleCore"]),
        library("Manifest", ["LifecycleCore"]),

        // The OS layer.
        .target(name: "CLinux", cSettings: cSettings),
        .systemLibrary(
            name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(
            name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
        // Descriptors, errors and sockets: what Linux and Systemd share.
        library("Posix", ["CLinux"]),
        library("Linux", ["Posix", "CLinux"]),
        library("Systemd", ["Posix", "CSystemd"]),
        library("JSON", ["CJansson"]),
        library("Control", ["Systemd", "JSON"]),

        // The daemon and the programs.
        library("Daemon", ["LifecycleCore", "Manifest", "Posix", "Linux", "Systemd", "JSON", "Control"]),
        library("Greenroom", ["Systemd"]),
        program("greenroomd", ["Daemon"]),
        program("greenroom-sim", ["LifecycleCore", "LifecycleSimulator"]),
        program("greenroom-bench", ["Posix", "Linux", "Systemd", "JSON", "Control"]),
        program("greenroomctl", ["LifecycleCore", "Manifest", "Systemd", "JSON", "Control"]),

        tests("LifecycleCoreTests", ["LifecycleCore"]),
        tests("SimulatorTests", ["LifecycleCore", "LifecycleSimulator"]),
        // Properties of every manifest, for the tests and the fuzzer.
        .target(
            name: "ManifestProperties", dependencies: ["LifecycleCore", "Manifest"], path: "Tests/ManifestProperties",
            swiftSettings: swiftSettings),
        tests("ManifestTests", ["LifecycleCore", "Manifest", "ManifestProperties"], exclude: ["Seeds"]),
        .target(name: "TestKit", path: "Tests/TestKit", swiftSettings: swiftSettings),
        tests("PosixTests", ["Posix", "TestKit"]),
        tests("LinuxTests", ["Linux", "Posix", "TestKit"]),
        tests("SystemdTests", ["Systemd", "Posix", "JSON", "TestKit"]),
        tests("ControlTests", ["greenroomctl", "Control", "Posix", "Systemd", "JSON", "LifecycleCore", "TestKit"]),
        // A scripted app for the daemon's tests.
        .executableTarget(name: "greenroom-testapp", path: "Tests/TestApp", cSettings: cSettings),
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
            name: "greenroom-fuzz", dependencies: ["ManifestProperties"], swiftSettings: swiftSettings,
            linkerSettings: [.unsafeFlags(["-use-ld=lld"])]))
}
