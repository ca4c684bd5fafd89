// swift-tools-version: 6.2
import PackageDescription

let swiftSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"), .strictMemorySafety(), .treatAllWarnings(as: .error),
]

let package = Package(
    name: "Benchmarks",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "swift-keychain", path: ".."),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.0"),
    ],
    targets: [
        .executableTarget(
            name: "Benchmarks",
            dependencies: [
                .product(name: "Valet", package: "swift-keychain"), .product(name: "KeychainServices", package: "swift-keychain"),
                .product(name: "Crypto", package: "swift-crypto"), "BenchmarkReport", "CBenchmarkShims", "CRawSQLite",
            ],
            swiftSettings: swiftSettings
        ),
        // Results, goals, and their output as a table, JSON, and a chart.
        .target(name: "BenchmarkReport", swiftSettings: swiftSettings),
        // Starts a command from a small process, so that the peak memory measured is that of the command.
        .executableTarget(name: "PeakMemory"),
        .target(name: "CBenchmarkShims"),
        .systemLibrary(name: "CRawSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .testTarget(name: "BenchmarkReportTests", dependencies: ["BenchmarkReport"], swiftSettings: swiftSettings),
    ]
)
