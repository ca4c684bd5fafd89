// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "SecretServer",
    platforms: [.macOS(.v15)],
    dependencies: [
        // The folder of a checkout can have any name.
        .package(name: "swift-keychain", path: "../..", traits: ["Configuration"]),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.20.0"),
    ],
    targets: [
        .executableTarget(
            name: "SecretServer",
            dependencies: [
                .product(name: "Valet", package: "swift-keychain"),
                .product(name: "ValetConfiguration", package: "swift-keychain"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Hummingbird", package: "hummingbird"),
            ]
        )
    ]
)
