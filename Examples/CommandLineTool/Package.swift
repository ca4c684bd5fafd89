// swift-tools-version: 6.2
import PackageDescription

// The program of the tutorial "Getting started" of Valet.
let package = Package(
    name: "luggage",
    platforms: [.macOS(.v13)],
    // The folder of a checkout can have any name.
    dependencies: [.package(name: "swift-keychain", path: "../..")],
    targets: [
        .executableTarget(name: "luggage", dependencies: [.product(name: "Valet", package: "swift-keychain")]),
        .testTarget(
            name: "LuggageTests",
            dependencies: [
                "luggage",
                .product(name: "KeychainTesting", package: "swift-keychain"),
                .product(name: "KeychainTestingTraits", package: "swift-keychain"),
            ]
        ),
    ]
)
