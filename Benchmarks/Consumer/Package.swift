// swift-tools-version: 6.2
// A package that uses Valet as any other package does, so that `make instructions` counts what a user's build executes.

import PackageDescription

let package = Package(
    name: "consumer", platforms: [.macOS(.v13)],
    // The package is named after its folder, which may have any name.
    dependencies: [.package(name: "swift-keychain", path: "../..")],
    targets: [.executableTarget(name: "Consumer", dependencies: [.product(name: "Valet", package: "swift-keychain")])]
)
