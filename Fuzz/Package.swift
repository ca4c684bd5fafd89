// swift-tools-version: 6.2
import PackageDescription

// Fuzz targets for all parsers of untrusted bytes (`make fuzz`).
//
// `Sources` is a symbolic link to the sources of the repository, so that this package can instrument them for libFuzzer without instrumenting
// their dependencies. It is built for release, but with assertions, and with testability because most parsers are internal.

/// Adds coverage counters for libFuzzer, assertions, and testability.
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
        .target(name: "SyncCore", dependencies: ["KeychainCore"], path: "Sources/SyncCore"),
        .target(name: "KeychainSystem", dependencies: ["KeychainCore", "CKeychainShims"], path: "Sources/KeychainSystem"),
        .target(name: "KeychainPeers", dependencies: ["KeychainCore"], path: "Sources/KeychainPeers"),
        .target(name: "KeychainIPC", dependencies: ["KeychainCore", "KeychainSystem"], path: "Sources/KeychainIPC"),
        .target(name: "CSQLiteShims", dependencies: ["CSQLite"], path: "Sources/CSQLiteShims"),
        .target(
            name: "KeychainStore", dependencies: ["KeychainCore", "KeychainSystem", "CSQLite", "CSQLiteShims"],
            path: "Sources/KeychainStore"
        ),
        .target(name: "KeychainTPM", dependencies: ["KeychainCore", "CTPMShims"], path: "Sources/KeychainTPM"),
        .target(
            name: "KeychainEngine",
            dependencies: [
                "KeychainCore", "KeychainSystem", "Keybag", "KeychainStore", "KeychainTPM", "KeychainIPC",
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Sources/KeychainEngine"
        ),
        .target(
            name: "SecurityAPI",
            dependencies: ["KeychainCore", "KeychainEngine", .product(name: "Logging", package: "swift-log")],
            path: "Sources/SecurityAPI"
        ),
        .target(
            name: "KeychainSync",
            dependencies: [
                "KeychainEngine", "SyncCore", "KeychainCore", "KeychainSystem", .product(name: "Logging", package: "swift-log"),
            ],
            path: "Sources/KeychainSync"
        ),
        // Without the trait Etcd it has no dependencies of others.
        .target(
            name: "KeychainSyncEtcd", dependencies: ["KeychainSync", "KeychainSystem"], path: "Sources/KeychainSyncEtcd",
            exclude: ["Messages/etcd.proto"]),
        .target(name: "KeychainServices", dependencies: ["SecurityAPI"], path: "Sources/KeychainServices"),
        .target(name: "Valet", dependencies: ["KeychainServices"], path: "Sources/Valet"),
        .target(name: "Locksmith", dependencies: ["KeychainServices"], path: "Sources/Locksmith"),
        .target(
            name: "ValetCLI",
            dependencies: [
                "Valet", "KeychainServices", "KeychainSync", "KeychainSyncEtcd", "KeychainEngine", "KeychainIPC", "KeychainCore",
                "KeychainSystem",
                .product(name: "ArgumentParser", package: "swift-argument-parser"), .product(name: "Logging", package: "swift-log"),
            ],
            path: "Sources/ValetCLI",
            // libFuzzer has its own `main`.
            swiftSettings: [.unsafeFlags(["-Xfrontend", "-entry-point-function-name", "-Xfrontend", "valet_main"])]
        ),
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                "ValetCLI", "Locksmith", "SecurityAPI", "KeychainEngine", "KeychainStore", "KeychainTPM", "Keybag", "SyncCore",
                "KeychainSystem", "KeychainIPC", "KeychainPeers", "KeychainCore", "CTPMShims", "CFuzzer",
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
