// swift-tools-version: 6.2
import PackageDescription

/// The platforms where the engine replaces Apple's Security framework: Linux with glibc.
let linux: [Platform] = [.linux]

/// The settings of every Swift target that `exemptions` does not list.
let strictSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

/// Targets with other settings, each with its reason.
let exemptions: [String: [SwiftSetting]] = [
    // Source code for Apple platforms, with the settings that are usual there.
    "KeychainServicesTests": [.swiftLanguageMode(.v5)],
    "UnchangedSourceTests": [.swiftLanguageMode(.v5)],
    // The settings of a reader who copies an example, without upcoming features.
    "LocksmithTests": [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)],
]

let cTargets: Set<String> = [
    "CDiskRecorder", "CKeychainShims", "CKeychainTestShims", "CKeychainTestingMarker", "CSQLiteShims", "CSystemdShims", "CTPMShims",
    "CValet", "CValetTestProgram",
]

let package = Package(
    name: "swift-keychain",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [
        .library(name: "KeychainServices", targets: ["KeychainServices"]),
        .library(name: "Valet", targets: ["Valet"]),
        .library(name: "Locksmith", targets: ["Locksmith"]),
        .library(name: "KeychainSync", targets: ["KeychainSync"]),
        .library(name: "KeychainSyncEtcd", targets: ["KeychainSyncEtcd"]),
        .library(name: "ValetConfiguration", targets: ["ValetConfiguration"]),
        .library(name: "KeychainTesting", targets: ["KeychainTesting"]),
        .library(name: "KeychainTestingTraits", targets: ["KeychainTestingTraits"]),
        .executable(name: "valet", targets: ["ValetCLI"]),
    ],
    traits: [
        .trait(name: "TPM", description: "Secrets sealed by a TPM 2.0. Building needs the headers of tpm2-tss, running its libraries."),
        .trait(name: "Configuration", description: "ValetConfiguration: secrets of a valet as values of swift-configuration."),
        .trait(
            name: "Etcd", description: "KeychainSyncEtcd: synchronization through etcd, for programs on Linux and for the command valet."),
        .trait(
            name: "SecretService",
            description:
                "keychain-secret-service: the keychain as the keyring of a desktop. Building needs the headers of libsystemd and libgcrypt."
        ),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        // With the trait Configuration only. A package without it does not resolve this one.
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: []),
        // With the trait Etcd only.
        .package(url: "https://github.com/grpc/grpc-swift-2", from: "2.4.0"),
        .package(url: "https://github.com/grpc/grpc-swift-nio-transport", from: "2.9.0"),
        .package(url: "https://github.com/apple/swift-protobuf", from: "1.39.0", traits: []),
    ],
    targets: [
        // Products
        .target(
            name: "KeychainServices",
            dependencies: [
                .target(name: "SecurityAPI", condition: .when(platforms: linux)),
                .target(name: "KeychainCore", condition: .when(platforms: linux)),
            ]
        ),
        .target(name: "Valet", dependencies: ["KeychainServices"]),
        .target(name: "Locksmith", dependencies: ["KeychainServices"]),
        // Empty without the trait, because `swift build` compiles every target.
        .target(
            name: "ValetConfiguration",
            dependencies: [
                "Valet", .product(name: "Configuration", package: "swift-configuration", condition: .when(traits: ["Configuration"])),
            ]
        ),
        .executableTarget(
            name: "ValetCLI",
            dependencies: [
                "Valet", "KeychainServices", "KeychainSync", "KeychainSyncEtcd", "KeychainEngine", "KeychainIPC", "KeychainCore",
                "KeychainSystem",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        .target(
            name: "KeychainTesting",
            dependencies: [
                .target(name: "KeychainCore", condition: .when(platforms: linux)),
                .target(name: "Keybag", condition: .when(platforms: linux)),
                .target(name: "KeychainEngine", condition: .when(platforms: linux)),
                .target(name: "KeychainSystem", condition: .when(platforms: linux)),
                .target(name: "CKeychainTestingMarker", condition: .when(platforms: linux)),
            ]
        ),
        .target(name: "KeychainTestingTraits", dependencies: ["KeychainTesting"]),

        // The engine, from the inside out
        .target(name: "KeychainCore", dependencies: ["CKeychainShims"]),
        .target(
            name: "Keybag",
            dependencies: [
                "KeychainCore", .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "CryptoExtras", package: "swift-crypto"),
            ]
        ),
        .target(name: "SyncCore", dependencies: ["KeychainCore"]),
        .target(name: "KeychainSystem", dependencies: ["KeychainCore", "CKeychainShims"]),
        .target(name: "KeychainStore", dependencies: ["KeychainCore", "KeychainSystem", "CSQLite", "CSQLiteShims"]),
        .target(name: "KeychainTPM", dependencies: ["KeychainCore", "CTPMShims"]),
        .target(
            name: "KeychainEngine",
            dependencies: [
                "KeychainCore", "KeychainSystem", "Keybag", "KeychainStore", "KeychainTPM", "KeychainIPC",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        .target(name: "KeychainIPC", dependencies: ["KeychainCore", "KeychainSystem"]),
        .target(name: "KeychainPeers", dependencies: ["KeychainCore"]),
        .executableTarget(name: "keychain-peer", dependencies: ["KeychainPeers", "KeychainSystem"]),
        .executableTarget(name: "keychain-agent", dependencies: ["KeychainIPC", "KeychainEngine", "KeychainSystem", "KeychainCore"]),
        .executableTarget(
            name: "keychaind",
            dependencies: [
                "KeychainIPC", "KeychainPeers", "KeychainEngine", "Keybag", "KeychainSystem", "KeychainCore",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        .executableTarget(name: "keychain-fprint-digest", dependencies: ["Keybag", "KeychainSystem", "KeychainCore"]),
        // Empty without the trait, and on Apple platforms.
        .target(
            name: "SecretService",
            dependencies: [
                "KeychainCore", .target(name: "KeychainSystem", condition: .when(platforms: linux)),
                .target(name: "KeychainEngine", condition: .when(platforms: linux)),
                .target(name: "Keybag", condition: .when(platforms: linux)),
                .target(name: "CSystemdShims", condition: .when(platforms: linux)),
            ]
        ),
        .executableTarget(
            name: "keychain-secret-service",
            dependencies: ["SecretService", "KeychainSystem", "KeychainEngine", "KeychainIPC", "KeychainCore"]),
        .target(
            name: "KeychainSync",
            dependencies: [
                .target(name: "KeychainCore", condition: .when(platforms: linux)),
                .target(name: "KeychainSystem", condition: .when(platforms: linux)),
                .target(name: "KeychainEngine", condition: .when(platforms: linux)),
                .target(name: "SyncCore", condition: .when(platforms: linux)), .product(name: "Logging", package: "swift-log"),
            ]
        ),
        // Empty without the trait, and on Apple platforms.
        .target(
            name: "KeychainSyncEtcd",
            dependencies: [
                "KeychainSync", .target(name: "KeychainSystem", condition: .when(platforms: linux)),
                .product(name: "GRPCCore", package: "grpc-swift-2", condition: .when(platforms: linux, traits: ["Etcd"])),
                .product(
                    name: "GRPCNIOTransportHTTP2Posix", package: "grpc-swift-nio-transport",
                    condition: .when(platforms: linux, traits: ["Etcd"])),
                .product(name: "SwiftProtobuf", package: "swift-protobuf", condition: .when(platforms: linux, traits: ["Etcd"])),
            ],
            exclude: ["Messages/etcd.proto"]
        ),
        .target(
            name: "SecurityAPI",
            dependencies: ["KeychainCore", "KeychainEngine", .product(name: "Logging", package: "swift-log")]
        ),

        // C
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "CSQLiteShims", dependencies: ["CSQLite"]),
        .target(name: "CKeychainShims"),
        // Without the trait its functions only report that, because `swift build` compiles every target.
        .target(name: "CTPMShims", cSettings: [.define("KEYCHAIN_TPM", .when(traits: ["TPM"]))]),
        // Empty without the trait, which alone needs the libraries.
        .target(
            name: "CSystemdShims", cSettings: [.define("KEYCHAIN_SECRET_SERVICE", .when(traits: ["SecretService"]))],
            linkerSettings: [
                .linkedLibrary("systemd", .when(platforms: linux, traits: ["SecretService"])),
                .linkedLibrary("gcrypt", .when(platforms: linux, traits: ["SecretService"])),
            ]
        ),
        .target(name: "CKeychainTestingMarker", dependencies: ["CKeychainShims"]),

        .target(name: "CValet"),

        // Tests
        .testTarget(name: "KeychainCoreTests", dependencies: ["KeychainCore", "KeychainTesting", "KeychainTestSupport"]),
        .testTarget(name: "SyncCoreTests", dependencies: ["SyncCore", "SyncSimulation", "Keybag", "KeychainCore", "KeychainTestSupport"]),
        .testTarget(
            name: "KeybagTests",
            dependencies: [
                "Keybag", "KeychainCore", "Contracts", "KeychainTestSupport", .product(name: "Crypto", package: "swift-crypto"),
            ]
        ),
        .testTarget(
            name: "KeychainStoreTests",
            dependencies: [
                "KeychainStore", "KeychainSystem", "KeychainCore", "Contracts", "KeychainTesting", "KeychainTestSupport", "CSQLite",
                "CSQLiteShims",
            ]
        ),
        .testTarget(
            name: "KeychainTPMTests",
            dependencies: ["KeychainTPM", "KeychainCore", "Contracts", "KeychainTestSupport", "KeychainTestChild", "CTPMShims"]
        ),
        .testTarget(
            name: "KeychainEngineTests",
            dependencies: [
                "KeychainEngine", "KeychainStore", "KeychainSystem", "Keybag", "KeychainCore", "Contracts", "KeychainTesting",
                "KeychainTestSupport", "KeychainTestChild", "CKeychainShims", "SyncCore",
            ]
        ),
        .testTarget(
            name: "KeychainSyncTests",
            dependencies: [
                "KeychainSync", "SyncCore", "SyncSimulation", "KeychainEngine", "KeychainSystem", "KeychainCore", "Contracts",
                "KeychainTestSupport", "KeychainTestChild",
            ]
        ),
        .testTarget(
            name: "KeychainSyncEtcdTests",
            dependencies: [
                "KeychainSyncEtcd", "KeychainSync", "KeychainEngine", "KeychainSystem", "KeychainCore", "Contracts", "KeychainTestSupport",
                .product(name: "GRPCCore", package: "grpc-swift-2", condition: .when(platforms: linux, traits: ["Etcd"])),
                .product(
                    name: "GRPCNIOTransportHTTP2Posix", package: "grpc-swift-nio-transport",
                    condition: .when(platforms: linux, traits: ["Etcd"])),
            ]
        ),
        .testTarget(
            name: "KeychainDaemonTests",
            dependencies: [
                "keychaind", "keychain-peer", "keychain-agent", "keychain-fprint-digest", "KeychainIPC", "KeychainPeers", "KeychainEngine",
                "KeychainStore",
                "KeychainSystem",
                "KeychainCore", "Contracts",
                "KeychainTesting", "SecurityAPI", "Valet", "KeychainTestSupport", "KeychainTestChild", "CKeychainTestShims",
            ],
            exclude: ["Fprintd", "Logind", "PAM", "Relay"]
        ),
        .testTarget(
            name: "SecretServiceTests",
            dependencies: [
                "keychain-secret-service", "keychaind", "SecretService", "ValetCLI", "KeychainIPC", "Keybag", "KeychainEngine",
                "KeychainSystem", "KeychainCore", "Contracts", "KeychainTestSupport", "KeychainTestChild",
                .target(name: "CSystemdShims", condition: .when(platforms: linux)),
            ]
        ),
        .testTarget(name: "SecurityAPITests", dependencies: ["SecurityAPI", "KeychainCore", "KeychainTesting"]),
        .testTarget(name: "KeychainServicesTests", dependencies: ["KeychainServices", "KeychainTestingTraits"]),
        .testTarget(
            name: "KeychainTestingTests",
            dependencies: ["KeychainTesting", "KeychainTestingTraits", "KeychainServices", "Valet"]
        ),
        .testTarget(
            name: "ValetTests",
            dependencies: ["Valet", "KeychainServices", "KeychainCore", "KeychainTesting", "KeychainTestingTraits", "ServedKeychain"]
        ),
        .testTarget(
            name: "ValetConfigurationTests",
            dependencies: [
                "ValetConfiguration", "Valet", "KeychainTesting", "KeychainTestingTraits",
                .product(name: "Configuration", package: "swift-configuration", condition: .when(traits: ["Configuration"])),
                .product(name: "ConfigurationTesting", package: "swift-configuration", condition: .when(traits: ["Configuration"])),
            ]
        ),
        .testTarget(
            name: "LocksmithTests",
            dependencies: ["Locksmith", "Valet", "KeychainServices", "KeychainTestSupport", "KeychainTesting", "KeychainTestingTraits"]
        ),
        .testTarget(
            name: "ValetCLITests",
            dependencies: [
                "ValetCLI", "Valet", "KeychainCore", "KeychainSystem", "Contracts", "KeychainTestSupport", "KeychainTestChild", "keychaind",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            exclude: ["Preload", "Scripts"]
        ),
        .testTarget(
            name: "ConformanceTests",
            dependencies: [
                "ServedKeychain", "KeychainServices", "KeychainTesting", "KeychainTestingTraits", "KeychainCore", "KeychainEngine",
                "KeychainSystem", "KeychainTestSupport",
            ]
        ),
        // The keychain of a test, directly or through keychaind.
        .target(
            name: "ServedKeychain",
            dependencies: [
                "keychaind", "KeychainIPC", "KeychainPeers", "KeychainServices", "KeychainTesting", "KeychainTestingTraits", "KeychainCore",
                "KeychainEngine", "KeychainSystem", "KeychainTestSupport",
            ],
            path: "Tests/ServedKeychain"
        ),
        .testTarget(
            name: "FaultTests",
            dependencies: [
                "Valet", "KeychainServices", "KeychainEngine", "KeychainStore", "KeychainTPM", "KeychainSystem", "KeychainIPC", "Keybag",
                "KeychainCore", "keychaind", "Contracts", "KeychainTesting", "KeychainTestSupport", "KeychainTestChild",
                "PowerCutSimulation",
                .product(name: "Crypto", package: "swift-crypto"),
            ]
        ),
        // The rules that every implementation of a port follows, as checks, and the conditions under which tests run.
        .target(
            name: "Contracts",
            dependencies: ["KeychainCore", "KeychainEngine", "KeychainSync", "KeychainTPM", "KeychainTesting", "KeychainTestSupport"],
            path: "Tests/Contracts"
        ),
        // The program that a test runs when it needs a second process. It must not link KeychainTesting or Testing.
        .executableTarget(
            name: "KeychainTestChild",
            dependencies: [
                "Valet", "KeychainServices", "KeychainEngine", "KeychainIPC", "KeychainStore", "KeychainSystem", "KeychainSync",
                "KeychainTPM",
                "KeychainCore", "KeychainTestSupport", "CKeychainTestShims", .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/KeychainTestChild"
        ),
        .target(name: "CKeychainTestShims", path: "Tests/CKeychainTestShims"),
        // Power cuts and failing disks. No test may depend on PowerCutWorkload, because CDiskRecorder replaces functions of the C library in
        // every program that links it. `swift build --build-tests` builds it nevertheless.
        .target(name: "CDiskRecorder", path: "Tests/CDiskRecorder"),
        .target(
            name: "PowerCutSimulation",
            dependencies: ["KeychainEngine", "KeychainStore", "KeychainSystem", "Keybag", "KeychainCore", "KeychainTestSupport"],
            path: "Tests/PowerCutSimulation"
        ),
        .executableTarget(
            name: "PowerCutWorkload",
            dependencies: [
                "Valet", "KeychainEngine", "KeychainStore", "KeychainCore", "KeychainTestSupport", "PowerCutSimulation", "CDiskRecorder",
            ],
            path: "Tests/PowerCutWorkload"
        ),
        // Synchronization, simulated. Neither opens a keychain of the user.
        .target(
            name: "SyncSimulation", dependencies: ["SyncCore", "KeychainCore", "KeychainStore", "Keybag", "KeychainTestSupport"],
            path: "Tests/SyncSimulation"
        ),
        .executableTarget(name: "SyncStorm", dependencies: ["SyncSimulation"], path: "Tests/SyncStorm"),
        // Three devices whose folder a real program moves, for Scripts/sync-real.sh.
        .executableTarget(
            name: "SyncWorkload",
            dependencies: [
                "KeychainSync", "KeychainSyncEtcd", "SyncCore", "SyncSimulation", "KeychainEngine", "KeychainCore", "KeychainTestSupport",
            ],
            path: "Tests/SyncWorkload"
        ),
        .executableTarget(name: "PowerCut", dependencies: ["PowerCutSimulation"], path: "Tests/PowerCut"),
        .executableTarget(
            name: "LedgerBenchmark",
            dependencies: ["Valet", "KeychainEngine", "KeychainStore", "KeychainCore", "KeychainTestSupport"], path: "Tests/LedgerBenchmark"
        ),
        .target(
            name: "KeychainTestSupport",
            dependencies: ["KeychainEngine", "KeychainStore", "KeychainCore", "CKeychainTestShims", "CSQLite"],
            path: "Tests/KeychainTestSupport"
        ),
        .testTarget(
            name: "ArchitectureTests",
            dependencies: [
                "Valet", "Locksmith", "KeychainServices", "KeychainSync", "KeychainTesting", "KeychainTestingTraits",
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
    ]
)

// The C interface is written with `@c @implementation`, which needs Swift 6.3.
#if compiler(>=6.3)
package.products.append(.library(name: "ValetC", type: .dynamic, targets: ["ValetC", "CValet"]))
package.targets += [
    .target(
        name: "ValetC",
        dependencies: ["CValet", "Valet", .target(name: "CKeychainShims", condition: .when(platforms: linux))]
    ),
    // Tests of the C interface, written in C. `make check-c` also runs it under Valgrind and Address Sanitizer.
    .executableTarget(
        name: "CValetTestProgram", dependencies: ["ValetC", "CValet"], path: "Tests/CValetTestProgram",
        exclude: ["valgrind.supp", "leaks.supp"]),
    .testTarget(
        name: "ValetCTests",
        dependencies: [
            "ValetC", "CValet", "Valet", "KeychainServices", "ValetCLI", "CValetTestProgram", "Contracts", "KeychainTesting",
            "KeychainTestingTraits", "KeychainTestSupport",
        ]
    ),
]
#endif

// The product for sources that import Apple's frameworks and are compiled on Linux without changes. Modules of these names must never be
// built on Apple platforms, where they would hide the frameworks. There the product contains KeychainServices, so that a package for all
// platforms can name it.
#if os(Linux)
package.products.append(.library(name: "Security", targets: ["Security", "LocalAuthentication"]))
package.targets += [
    .target(name: "Security", dependencies: ["KeychainServices"]),
    .target(name: "LocalAuthentication", dependencies: ["KeychainServices"]),
]
let appleModules: [Target.Dependency] = ["Security", "LocalAuthentication"]
#else
package.products.append(.library(name: "Security", targets: ["KeychainServices"]))
let appleModules: [Target.Dependency] = []
#endif
package.targets.append(.testTarget(name: "UnchangedSourceTests", dependencies: appleModules + ["KeychainTestingTraits"]))

#if os(macOS) && compiler(>=6.3)
// On Linux the Objective-C classes are a separate package, Bindings/ObjectiveC, because they need GNUstep and unsafe flags.
package.products.append(.library(name: "ValetObjectiveC", targets: ["ValetObjectiveC"]))
package.targets.append(
    .target(name: "ValetObjectiveC", dependencies: ["ValetC", "CValet"], path: "Bindings/ObjectiveC/Sources/ValetObjectiveC")
)
#endif

for target in package.targets where target.type != .system && !cTargets.contains(target.name) {
    target.swiftSettings = exemptions[target.name] ?? strictSettings
}
