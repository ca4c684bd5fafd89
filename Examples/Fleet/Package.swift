// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "signer",
    platforms: [.macOS(.v13)],
    dependencies: [
        // The folder of a checkout can have any name.
        .package(name: "swift-keychain", path: "../.."),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
    ],
    targets: [
        .executableTarget(
            name: "signer",
            dependencies: [
                .product(name: "KeychainSync", package: "swift-keychain"),
                .product(name: "Valet", package: "swift-keychain"),
                .product(name: "Crypto", package: "swift-crypto"),
            ]
        )
    ]
)
