// swift-tools-version: 6.2
import PackageDescription

// Fuzzes what reads bytes that others wrote (`make fuzz`).
//
// The sources are the repository's own, over the symbolic link `Sources`, so that they alone are built for libFuzzer (it is told which
// branches an input takes) and what they depend on is built as usual. Built for release, for the speed, but with all assertions and with
// what `@testable` needs: what is fuzzed is mostly internal.

/// Adds the counters that tell libFuzzer how far an input came.
let instrumented: SwiftSetting = .unsafeFlags(["-sanitize=fuzzer", "-enable-testing", "-assert-config", "Debug"])

let package = Package(
    name: "Fuzz",
    platforms: [.macOS(.v13)],
    dependencies: [
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    ],
    targets: [
        .systemLibrary(name: "CFuzzer", path: "CFuzzer"),
        .systemLibrary(name: "CSQLite", path: "Sources/CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "CKeychainShims", path: "Sources/CKeychainShims"),
        .target(name: "CTPMShims", path: "Sources/CTPMShims"),
        .target(name: "KeychainCore", dependencies: ["CKeychainShims"], path: "Sources/KeychainCore"),
        .target(
            name: "Keybag",
            dependencies: [
                "KeychainCore", .product(name: "Crypto", package: "swift-crypto"), .product(name: "CryptoExtras", package: "swift-crypto"),
            ],
            path: "Sources/Keybag"
        ),
        .target(name: "KeychainSystem", dependencies: ["KeychainCore", "CKeychainShims"], path: "Sources/KeychainSystem"),
        .target(name: "CSQLiteShims", dependencies: ["CSQLite"], path: "Sources/CSQLiteShims"),
        .target(
            name: "KeychainStore", dependencies: ["KeychainCore", "KeychainSystem", "CSQLite", "CSQLiteShims"],
            path: "Sources/KeychainStore"
        ),
        .target(name: "KeychainTPM", dependencies: ["KeychainCore", "CTPMShims"], path: "Sources/KeychainTPM"),
        .target(
            name: "KeychainEngine",
            dependencies: [
                "KeychainCore", "KeychainSystem", "Keybag", "KeychainStore", "KeychainTPM",
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Sources/KeychainEngine"
        ),
        .target(
            name: "SecurityAPI",
            dependencies: ["KeychainCore", "KeychainEngine", .product(name: "Logging", package: "swift-log")],
            path: "Sources/SecurityAPI"
        ),
        .target(name: "KeychainServices", dependencies: ["SecurityAPI"], path: "Sources/KeychainServices"),
        .target(name: "Valet", dependencies: ["KeychainServices"], path: "Sources/Valet"),
        .target(name: "Locksmith", dependencies: ["KeychainServices"], path: "Sources/Locksmith"),
        .target(
            name: "ValetCLI",
            dependencies: [
                "Valet", "KeychainServices", "KeychainEngine", "KeychainCore", "KeychainSystem",
                .product(name: "ArgumentParser", package: "swift-argument-parser"), .product(name: "Logging", package: "swift-log"),
            ],
            path: "Sources/ValetCLI",
            // The program has a `main` of its own.
            swiftSettings: [.unsafeFlags(["-Xfrontend", "-entry-point-function-name", "-Xfrontend", "valet_main"])]
        ),
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                "ValetCLI", "Locksmith", "SecurityAPI", "KeychainEngine", "KeychainStore", "KeychainTPM", "Keybag", "KeychainSystem", "KeychainCore",
                "CTPMShims", "CFuzzer",
                .product(name: "ArgumentParser", package: "swift-argument-parser"), .product(name: "Crypto", package: "swift-crypto"),
            ],
            path: "Targets",
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])]
        ),
    ]
)

for target in package.targets where [.regular, .executable].contains(target.type) && !target.name.hasPrefix("C") {
    target.swiftSettings =
        (target.swiftSettings ?? []) + [
            .swiftLanguageMode(.v6),
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("MemberImportVisibility"),
            .enableUpcomingFeature("InternalImportsByDefault"),
            .strictMemorySafety(),
            .treatAllWarnings(as: .error),
            instrumented,
        ]
}
