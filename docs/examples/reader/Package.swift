// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "reader",
    dependencies: [.package(name: "greenroom", path: "../../..")],
    targets: [
        .executableTarget(name: "reader", dependencies: [.product(name: "Greenroom", package: "greenroom")])
    ]
)
