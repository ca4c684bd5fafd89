// swift-tools-version: 6.2
import Foundation
import PackageDescription

// The Objective-C classes of Valet, on top of the C interface.
//
// On Linux this package builds them with GNUstep and GCC's Objective-C runtime, which needs unsafe flags. On Apple platforms the main package
// has the product ValetObjectiveC, from the same sources, and this package only tests it. `Scripts/objective-c-tests.sh` builds and runs
// everything here.

#if os(Linux)
/// The header directory of the newest installed GCC with an Objective-C runtime, which is also the one that Clang links.
let gccHeaders: String = {
    let root = URL(filePath: "/usr/lib/gcc")
    let files = FileManager.default
    let targets = (try? files.contentsOfDirectory(at: root, includingPropertiesForKeys: nil)) ?? []
    let versions = targets.flatMap { (try? files.contentsOfDirectory(at: $0, includingPropertiesForKeys: nil)) ?? [] }
    let withRuntime = versions.filter { files.fileExists(atPath: $0.appending(path: "include/objc/objc.h").path) }
    let newest = withRuntime.max { $0.lastPathComponent.compare($1.lastPathComponent, options: .numeric) == .orderedAscending }
    return newest?.appending(path: "include").path ?? "/usr/include"
}()

// GNUstep's headers are system headers, so they cause no warnings. GCC's headers come last, because they contain another `stddef.h`.
let objectiveC: [CSetting] = [
    .unsafeFlags([
        "-fobjc-runtime=gcc", "-fconstant-string-class=NSConstantString", "-fexceptions", "-fobjc-exceptions",
        "-D_NATIVE_OBJC_EXCEPTIONS", "-I", "\(Context.packageDirectory)/GNUstep", "-isystem", "/usr/include/GNUstep",
        "-idirafter", gccHeaders, "-Wall", "-Wextra", "-Werror",
    ])
]

// Settings for the examples of Valet. They pass `nil`, which is an object with GCC's runtime, as a pointer to an error, and one passes an
// accessibility as a cloud accessibility with the same raw value.
let exampleSettings: [CSetting] = [.unsafeFlags(["-Wno-incompatible-pointer-types", "-Wno-enum-conversion"])]

/// The Swift toolchain contains the runtime of blocks.
let foundation: [LinkerSetting] = [.linkedLibrary("gnustep-base"), .linkedLibrary("objc"), .linkedLibrary("BlocksRuntime")]

/// The Objective-C classes, from this package.
let classes: Target.Dependency = "ValetObjectiveC"
#else
let objectiveC: [CSetting] = []
let exampleSettings: [CSetting] = []
let foundation: [LinkerSetting] = []

/// The Objective-C classes, from the main package.
let classes: Target.Dependency = .product(name: "ValetObjectiveC", package: "swift-keychain")
#endif

let package = Package(
    name: "ValetObjectiveC",
    platforms: [.macOS(.v13)],
    products: [],
    dependencies: [.package(name: "swift-keychain", path: "../..")],
    targets: [
        // Valet's examples, unchanged.
        .executableTarget(
            name: "ReadmeExamples", dependencies: [classes], path: "Tests/ReadmeExamples", cSettings: objectiveC + exampleSettings),
        // The tests of each method.
        .executableTarget(name: "ValetObjectiveCTests", dependencies: [classes], path: "Tests/ValetObjectiveCTests", cSettings: objectiveC),
        // The Swift program that shares a keychain with the Objective-C programs.
        .executableTarget(
            name: "SwiftPeer",
            dependencies: [
                .product(name: "Valet", package: "swift-keychain"), .product(name: "KeychainServices", package: "swift-keychain"),
            ],
            path: "Tests/SwiftPeer",
            swiftSettings: [
                .swiftLanguageMode(.v6), .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("InternalImportsByDefault"), .strictMemorySafety(), .treatAllWarnings(as: .error),
            ]
        ),
    ]
)

#if os(Linux)
package.products.append(.library(name: "ValetObjectiveC", targets: ["ValetObjectiveC"]))
package.targets.append(
    .target(
        name: "ValetObjectiveC", dependencies: [.product(name: "ValetC", package: "swift-keychain")], cSettings: objectiveC,
        linkerSettings: foundation
    )
)
#endif
