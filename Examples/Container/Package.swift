// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "spaceball",
    platforms: [.macOS(.v13)],
    // The folder of a checkout can have any name.
    dependencies: [.package(name: "swift-keychain", path: "../..")],
    targets: [
        .executableTarget(name: "spaceball", dependencies: [.product(name: "Valet", package: "swift-keychain")])
    ]
)
