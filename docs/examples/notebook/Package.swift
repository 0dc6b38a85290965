// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "notebook",
    dependencies: [.package(name: "greenroom", path: "../../..")],
    targets: [
        .executableTarget(name: "notebook", dependencies: [.product(name: "Greenroom", package: "greenroom")])
    ]
)
