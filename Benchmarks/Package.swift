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
        // Figures, goals, table, JSON and chart; it measures nothing.
        .target(name: "BenchmarkReport", swiftSettings: swiftSettings),
        // Starts a command from a process so small that the command's peak memory is its own.
        .executableTarget(name: "PeakMemory"),
        .target(name: "CBenchmarkShims"),
        .systemLibrary(name: "CRawSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .testTarget(name: "BenchmarkReportTests", dependencies: ["BenchmarkReport"], swiftSettings: swiftSettings),
    ]
)
