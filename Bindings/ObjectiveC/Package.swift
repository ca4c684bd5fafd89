// swift-tools-version: 6.2
import Foundation
import PackageDescription

// The classes of Valet for Objective-C, over the interface for C.
//
// On Linux this package builds them with GNUstep and GCC's Objective-C runtime, which takes flags that SwiftPM calls unsafe. On Apple platforms it
// takes none: there the repository's own package has the product ValetObjectiveC, from the same sources, and this package only tests it.
// `Scripts/objective-c-tests.sh` builds and runs everything here.

#if os(Linux)
/// Where GCC has the headers of its Objective-C runtime: in the newest that is installed, which is also the one that Clang links with.
let gccHeaders: String = {
    let root = URL(filePath: "/usr/lib/gcc")
    let files = FileManager.default
    let targets = (try? files.contentsOfDirectory(at: root, includingPropertiesForKeys: nil)) ?? []
    let versions = targets.flatMap { (try? files.contentsOfDirectory(at: $0, includingPropertiesForKeys: nil)) ?? [] }
    let having = versions.filter { files.fileExists(atPath: $0.appending(path: "include/objc/objc.h").path) }
    let newest = having.max { $0.lastPathComponent.compare($1.lastPathComponent, options: .numeric) == .orderedAscending }
    return newest?.appending(path: "include").path ?? "/usr/include"
}()

/// GNUstep's headers are the system's, so no warnings come from them; GCC's come last, since it has its own `stddef.h` there.
let objectiveC: [CSetting] = [
    .unsafeFlags([
        "-fobjc-runtime=gcc", "-fconstant-string-class=NSConstantString", "-fexceptions", "-fobjc-exceptions",
        "-D_NATIVE_OBJC_EXCEPTIONS", "-I", "\(Context.packageDirectory)/GNUstep", "-isystem", "/usr/include/GNUstep",
        "-idirafter", gccHeaders, "-Wall", "-Wextra", "-Werror",
    ])
]

/// GCC's `nil` is an object and nothing else, but the examples give it for a pointer to an error; and one gives an accessibility where a cloud
/// accessibility is wanted, which has the same number.
let asTheyAre: [CSetting] = [.unsafeFlags(["-Wno-incompatible-pointer-types", "-Wno-enum-conversion"])]

/// Swift brings the runtime of blocks.
let foundation: [LinkerSetting] = [.linkedLibrary("gnustep-base"), .linkedLibrary("objc"), .linkedLibrary("BlocksRuntime")]

/// For the programs here: the classes, from this package.
let classes: Target.Dependency = "ValetObjectiveC"
#else
let objectiveC: [CSetting] = []
let asTheyAre: [CSetting] = []
let foundation: [LinkerSetting] = []

/// For the programs here: the classes, from the repository's package.
let classes: Target.Dependency = .product(name: "ValetObjectiveC", package: "swift-keychain")
#endif

let package = Package(
    name: "ValetObjectiveC",
    platforms: [.macOS(.v13)],
    products: [],
    dependencies: [.package(name: "swift-keychain", path: "../..")],
    targets: [
        // Valet's examples, word for word.
        .executableTarget(
            name: "ReadmeExamples", dependencies: [classes], path: "Tests/ReadmeExamples", cSettings: objectiveC + asTheyAre),
        // What each method does.
        .executableTarget(name: "ValetObjectiveCTests", dependencies: [classes], path: "Tests/ValetObjectiveCTests", cSettings: objectiveC),
        // The program in Swift that they share a keychain with.
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
