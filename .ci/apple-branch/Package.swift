// swift-tools-version: 6.2
import PackageDescription

// Builds KeychainServices, Valet and Locksmith on Linux through the branch that Apple platforms take (`swift build --package-path .ci/apple-branch`).
//
// The sources are the repository's own, over the symbolic link `Sources`. Modules named Security and LocalAuthentication stand in for
// Apple's: they re-export SecurityAPI, and the flag KEYCHAIN_APPLE_BRANCH selects the branch. What this proves is the imports of that branch, not Apple's stricter coercions.
//
// The engine has a stand-in too. Nothing here runs it, and the real one would build all of swift-crypto for that. The file of it that
// SecurityAPI also needs is a symbolic link.

let package = Package(
    name: "apple-branch",
    dependencies: [.package(url: "https://github.com/apple/swift-log", from: "1.16.2")],
    targets: [
        .target(name: "Security", dependencies: ["SecurityAPI"], path: "StandIns/Security"),
        .target(name: "LocalAuthentication", dependencies: ["SecurityAPI"], path: "StandIns/LocalAuthentication"),
        .target(name: "KeychainEngine", dependencies: ["KeychainCore"], path: "StandIns/KeychainEngine"),
        .target(name: "CKeychainShims", path: "Sources/CKeychainShims"),
        .target(name: "KeychainCore", dependencies: ["CKeychainShims"], path: "Sources/KeychainCore"),
        .target(
            name: "SecurityAPI",
            dependencies: ["KeychainCore", "KeychainEngine", .product(name: "Logging", package: "swift-log")],
            path: "Sources/SecurityAPI"
        ),
        .target(name: "KeychainServices", dependencies: ["Security", "LocalAuthentication"], path: "Sources/KeychainServices"),
        .target(name: "Valet", dependencies: ["KeychainServices"], path: "Sources/Valet"),
        .target(name: "Locksmith", dependencies: ["KeychainServices"], path: "Sources/Locksmith"),
        // Sources that import Apple's frameworks. The main package compiles the same files for Linux.
        .target(
            name: "UnchangedSources", dependencies: ["Security", "LocalAuthentication"], path: "UnchangedSources",
            exclude: ["UnchangedSourceTests.swift"]
        ),
        // The calls of the example with SecItem.
        .target(name: "SecItemExample", dependencies: ["KeychainServices"], path: "SecItemExample", exclude: ["main.swift"]),
        .executableTarget(
            name: "AppleBranchCheck", dependencies: ["Valet", "Locksmith", "KeychainServices", "UnchangedSources", "SecItemExample"],
            path: "AppleBranchCheck"
        ),
    ]
)

for target in package.targets where !["CKeychainShims", "UnchangedSources", "SecItemExample"].contains(target.name) {
    target.swiftSettings = [
        .swiftLanguageMode(.v6),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .strictMemorySafety(),
        .treatAllWarnings(as: .error),
        .define("KEYCHAIN_APPLE_BRANCH"),
    ]
}
