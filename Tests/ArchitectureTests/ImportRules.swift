// SPDX-License-Identifier: Apache-2.0

/// The modules that each target under `Sources` may import.
///
/// A new target needs a row.
private let allowedImports: [String: Set<String>] = [
    "KeychainServices": ["SecurityAPI", "KeychainCore", "Security", "LocalAuthentication", "Dispatch", "Foundation"],
    "Security": ["KeychainServices"],
    "LocalAuthentication": ["KeychainServices", "Foundation"],
    "SecurityAPI": ["KeychainCore", "KeychainEngine", "Logging", "Foundation", "FoundationEssentials", "Synchronization"],
    "KeychainCore": ["CKeychainShims", "FoundationEssentials", "Synchronization"],
    "SyncCore": ["KeychainCore"],
    "Keybag": ["KeychainCore", "Crypto", "CryptoExtras", "FoundationEssentials", "Synchronization"],
    "KeychainSystem": systemModules.union(["KeychainCore", "CKeychainShims"]),
    "KeychainStore": standardModules.union(["KeychainSystem", "KeychainCore", "CSQLite", "CSQLiteShims"]),
    "KeychainTPM": standardModules.union(["KeychainCore", "CTPMShims"]),
    "KeychainEngine": standardModules.union([
        "KeychainSystem", "KeychainCore", "Keybag", "KeychainStore", "KeychainTPM", "KeychainIPC", "Logging",
    ]),
    "KeychainIPC": standardModules.union(["KeychainSystem", "KeychainCore"]),
    "KeychainPeers": ["KeychainCore"],
    "keychain-agent": standardModules.union(["KeychainIPC", "KeychainEngine", "KeychainSystem", "KeychainCore"]),
    "keychain-peer": standardModules.union(["KeychainPeers", "KeychainSystem"]),
    "keychain-fprint-digest": standardModules.union(["Keybag", "KeychainSystem"]),
    "keychaind": standardModules.union([
        "Keybag",
        "KeychainIPC", "KeychainPeers", "KeychainEngine", "KeychainSystem", "KeychainCore", "ArgumentParser",
    ]),
    "KeychainSync": standardModules.union(["KeychainSystem", "KeychainCore", "KeychainEngine", "SyncCore", "Logging"]),
    "KeychainSyncEtcd": standardModules.union([
        "KeychainSync", "KeychainSystem", "GRPCCore", "GRPCNIOTransportHTTP2Posix", "SwiftProtobuf",
    ]),
    "SecretService": standardModules.union(["KeychainEngine", "KeychainSystem", "KeychainCore", "Keybag", "CSystemdShims"]),
    "keychain-secret-service": ["SecretService", "KeychainEngine", "KeychainIPC", "KeychainSystem", "KeychainCore"],
    "Valet": ["KeychainServices", "Foundation"],
    "Locksmith": ["KeychainServices", "Foundation"],
    "ValetConfiguration": ["Valet", "Configuration", "Foundation"],
    "ValetC": systemModules.union(["CValet", "Valet", "CKeychainShims"]),
    "ValetCLI": standardModules.union([
        "Valet", "KeychainServices", "KeychainSync", "KeychainSyncEtcd", "KeychainEngine", "KeychainIPC", "KeychainCore",
        "KeychainSystem", "ArgumentParser", "Logging",
    ]),
    "KeychainTesting": standardModules.union([
        "KeychainCore", "Keybag", "KeychainEngine", "KeychainSystem", "CKeychainTestingMarker",
    ]),
    "KeychainTestingTraits": ["KeychainTesting", "Testing", "Foundation"],
]

/// Swift's own modules and Foundation.
private let standardModules: Set<String> = ["Foundation", "FoundationEssentials", "Dispatch", "Synchronization"]
/// The C library.
///
/// `SystemRules.swift` has the reasons of the targets that may import it.
private let systemModules: Set<String> = standardModules.union(["Glibc", "Musl", "Android", "Darwin"])

/// The targets, including tests, that may import a confined dependency.
private let confined: [(module: String, targets: Set<String>, reason: String)] = [
    (
        "Crypto", ["Keybag", "KeybagTests", "FaultTests"],
        "cryptography is reviewed in one place; FaultTests hashes the values that it searches for"
    ),
    ("CryptoExtras", ["Keybag"], "cryptography is reviewed in one place"),
    (
        "CSQLite", ["KeychainStore", "KeychainStoreTests", "KeychainTestSupport"],
        "only the store knows the layout of rows on disk; tests tamper with it through RawDatabase"
    ),
    ("CSQLiteShims", ["KeychainStore", "KeychainStoreTests"], "only the store knows the layout of a page"),
    (
        "ArgumentParser", ["ValetCLI", "ValetCLITests", "keychaind"],
        "a program that uses a library of ours must not build a command-line parser"
    ),
    (
        "Configuration", ["ValetConfiguration", "ValetConfigurationTests"],
        "a package without the trait Configuration does not resolve swift-configuration"
    ),
    ("GRPCCore", ["KeychainSyncEtcd", "KeychainSyncEtcdTests"], "a package without the trait Etcd resolves none of gRPC's packages"),
    (
        "GRPCNIOTransportHTTP2Posix", ["KeychainSyncEtcd", "KeychainSyncEtcdTests"],
        "a package without the trait Etcd resolves none of gRPC's packages"
    ),
    ("SwiftProtobuf", ["KeychainSyncEtcd"], "a package without the trait Etcd does not resolve swift-protobuf"),
    ("CValet", ["ValetC", "ValetCTests"], "Swift programs use Valet; the names of C are for other languages"),
    ("CTPMShims", ["KeychainTPM", "KeychainTPMTests"], "the TPM is optional"),
    (
        "CSystemdShims", ["SecretService", "SecretServiceTests"],
        "a build without the trait SecretService needs neither libsystemd nor libgcrypt, and no process with keys links them"
    ),
    ("CDiskRecorder", ["PowerCutWorkload"], "it replaces functions of the C library in every program that links it"),
]

/// What a pure function may not use.
private let impureNames: Set<String> = [
    "Date", "Clock", "ContinuousClock", "SuspendingClock", "random", "randomElement", "shuffle", "shuffled", "SystemRandomNumberGenerator",
    "Task", "Mutex", "Atomic", "async", "await", "Dispatch", "Foundation",
]

/// The programs that tests start, and the targets that they link.
private let childPrograms: Set<String> = [
    "KeychainTestChild", "KeychainTestSupport", "PowerCut", "PowerCutSimulation", "PowerCutWorkload", "SyncWorkload",
]

let importRules: [Rule] = [
    Rule(
        "A target imports only what its row allows",
        because: "dependencies point to KeychainCore, and a dependency that spreads can no longer be replaced",
        caught: [
            SourceFile(path: "Sources/KeychainCore/A.swift", text: "import Foundation"),
            SourceFile(path: "Sources/Keybag/A.swift", text: "package import KeychainStore"),
            SourceFile(path: "Sources/KeychainStore/A.swift", text: "@testable import Keybag"),
            SourceFile(path: "Sources/SecurityAPI/A.swift", text: "import struct KeychainStore.Row"),
            SourceFile(path: "Sources/Valet/A.swift", text: "import KeychainEngine"),
            SourceFile(path: "Sources/KeychainStore/A.swift", text: "import Glibc"),
            SourceFile(path: "Sources/KeychainEngine/A.swift", text: "#if canImport(Darwin)\nimport Darwin\n#endif"),
            SourceFile(path: "Sources/NoRowYet/A.swift", text: "import Foundation"),
        ],
        passed: [
            SourceFile(path: "Sources/Valet/A.swift", text: "public import Foundation\ninternal import KeychainServices // import Keybag"),
            SourceFile(path: "Sources/KeychainEngine/A.swift", text: "import Keybag\nimport KeychainStore"),
        ],
        eachFile: { file in
            guard file.isSource, let target = file.target else { return [] }
            guard let allowed = allowedImports[target] else { return [file.violation("the target \(target) has no row in the table")] }
            return file.imports.filter { !allowed.contains($0.module) }
                .map { file.violation(line: $0.line, "\(target) may not import \($0.module)") }
        }
    ),
    Rule(
        "A confined dependency is imported only by its module and that module's tests",
        because: confined.map { "\($0.module): \($0.reason)" }.joined(separator: "; "),
        caught: [
            SourceFile(path: "Tests/ValetTests/A.swift", text: "import CSQLite"),
            SourceFile(path: "Sources/KeychainEngine/A.swift", text: "import Crypto"),
            SourceFile(path: "Sources/Valet/A.swift", text: "private import ArgumentParser"),
        ],
        passed: [SourceFile(path: "Tests/KeychainStoreTests/A.swift", text: "import CSQLite")],
        eachFile: { file in
            confined.flatMap { module, targets, reason in
                file.imports.filter { $0.module == module && !targets.contains(file.target ?? "") }
                    .map { file.violation(line: $0.line, "imports \(module): \(reason)") }
            }
        }
    ),
    Rule(
        "Programs that tests start as a second process import neither Testing nor KeychainTesting",
        because: "KeychainTesting changes which keychain a process uses, and these programs must behave as programs of users do",
        caught: [
            SourceFile(path: "Tests/KeychainTestChild/A.swift", text: "import KeychainTesting"),
            SourceFile(path: "Tests/KeychainTestSupport/A.swift", text: "import Testing"),
        ],
        passed: [
            SourceFile(path: "Tests/KeychainTestChild/A.swift", text: "import KeychainTestSupport"),
            SourceFile(path: "Tests/Contracts/A.swift", text: "import KeychainTesting"),
        ],
        eachFile: { file in
            guard childPrograms.contains(file.target ?? "") else { return [] }
            return file.imports.filter { ["Testing", "KeychainTesting", "KeychainTestingTraits", "Contracts"].contains($0.module) }
                .map { file.violation(line: $0.line, "imports \($0.module)") }
        }
    ),
    Rule(
        "Valet and Locksmith import KeychainServices internally",
        because: "their API is the same on every platform, so it must not contain names of Keychain Services",
        caught: [
            SourceFile(path: "Sources/Valet/A.swift", text: "public import KeychainServices"),
            SourceFile(path: "Sources/Locksmith/A.swift", text: "package import KeychainServices"),
        ],
        passed: [
            SourceFile(path: "Sources/Valet/A.swift", text: "internal import KeychainServices\npublic import Foundation"),
            SourceFile(path: "Sources/ValetCLI/A.swift", text: "package import KeychainServices"),
        ],
        eachFile: { file in
            guard file.isSource, ["Valet", "Locksmith"].contains(file.target ?? "") else { return [] }
            return file.imports.filter { $0.module == "KeychainServices" }
                .filter { file.code[$0.line].contains("public ") || file.code[$0.line].contains("package ") }
                .map { file.violation(line: $0.line, "imports KeychainServices publicly") }
        }
    ),
    Rule(
        "KeychainCore has no dictionaries with `Any`",
        because: "its types are checked when they are created",
        caught: ["var a: [String: Any]", "var a: [String : Any] = [:]", "var a: [AnyHashable: Any]"].map {
            SourceFile(path: "Sources/KeychainCore/A.swift", text: $0)
        },
        passed: [
            SourceFile(path: "Sources/KeychainCore/A.swift", text: "// No [String: Any].\nvar a: [String: AnyValue]"),
            SourceFile(path: "Sources/SecurityAPI/A.swift", text: "var a: [String: Any]"),
        ],
        eachFile: { file in
            guard file.isSource, file.target == "KeychainCore" else { return [] }
            return file.code.indices.filter { line in
                let code = file.code[line].filter { $0 != " " }
                return ["[String:Any]", "[AnyHashable:Any]"].contains { code.contains($0) }
            }
            .map { file.violation(line: $0, "uses a dictionary with `Any`") }
        }
    ),
    Rule(
        "SyncCore names no clock, no randomness, no task, and no lock",
        because: "the simulator replays a schedule from its seed, so time and randomness come from the caller of a step",
        caught: [
            "let now = Date()", "let clock: any Clock", "UInt64.random(in: 0..<9)", "Identifier128.random()",
            "var generator = SystemRandomNumberGenerator()", "Task { }", "let lock = Mutex(1)", "func step() async {}", "await step()",
            "array.shuffled()", "array.randomElement()",
        ].map { SourceFile(path: "Sources/SyncCore/A.swift", text: $0) },
        passed: [
            SourceFile(path: "Sources/SyncCore/A.swift", text: "// A Date.\nlet dates = 1\nfunc randomWord() -> UInt64 { 1 }"),
            SourceFile(path: "Sources/SyncCore/A.swift", text: "let bytes = try cipher.randomBytes(16)"),
            SourceFile(path: "Sources/KeychainCore/A.swift", text: "let now = Date()"),
        ],
        eachFile: { file in
            guard file.isSource, file.target == "SyncCore" else { return [] }
            return file.code.indices.flatMap { line in
                let words = file.code[line].split { !($0.isLetter || $0.isNumber || $0 == "_") }
                return words.filter { impureNames.contains(String($0)) }.map { file.violation(line: line, "names \($0)") }
            }
        }
    ),
    Rule(
        "Only the files Exports.swift export another module, and only LocalAuthentication exports Foundation",
        because: """
            a program that imports Keychain Services must not get the names of Foundation with it on one platform only; Apple's \
            LocalAuthentication exports Foundation
            """,
        caught: [
            SourceFile(path: "Sources/SecurityAPI/A.swift", text: "@_exported public import Foundation"),
            SourceFile(path: "Sources/KeychainServices/Exports.swift", text: "@_exported import Foundation"),
            SourceFile(path: "Sources/Security/Exports.swift", text: "@_exported public import Foundation"),
            SourceFile(path: "Sources/Valet/Exports.swift", text: "@_exported public import KeychainServices"),
        ],
        passed: [
            SourceFile(path: "Sources/KeychainServices/Exports.swift", text: "@_exported public import SecurityAPI"),
            SourceFile(path: "Sources/Security/Exports.swift", text: "@_exported public import KeychainServices"),
            SourceFile(path: "Sources/LocalAuthentication/Exports.swift", text: "@_exported public import Foundation"),
            SourceFile(path: "Sources/SecurityAPI/A.swift", text: "public import Foundation"),
        ],
        eachFile: { file in
            let mayExport = ["KeychainServices", "Security", "LocalAuthentication"].contains { file.path == "Sources/\($0)/Exports.swift" }
            return file.imports.filter {
                $0.isExported && (!mayExport || $0.module.hasPrefix("Foundation") && file.target != "LocalAuthentication")
            }.map { file.violation(line: $0.line, "exports \($0.module)") }
        }
    ),
    Rule(
        "No condition is `canImport(Security)` or `canImport(LocalAuthentication)`",
        because: """
            on Linux all modules of a build share one folder, so the answer depends on whether this package's modules of these names are \
            built already. Exports.swift asks for LocalAuthentication on Apple platforms, where these modules do not exist, and the \
            sources in UnchangedSourceTests depend on both modules
            """,
        caught: [
            SourceFile(path: "Sources/Valet/A.swift", text: "#if canImport(Security)\n#endif"),
            SourceFile(path: "Sources/KeychainServices/Exports.swift", text: "#if canImport(Security)\n#endif"),
            SourceFile(path: "Sources/Valet/A.swift", text: "#if canImport(LocalAuthentication)\n#endif"),
            SourceFile(path: "Tests/ValetTests/A.swift", text: "#if !canImport( Security )\n#endif"),
        ],
        passed: [
            SourceFile(
                path: "Sources/KeychainServices/Exports.swift",
                text: "#if canImport(Darwin)\n#if canImport(LocalAuthentication)\n#endif\n#endif"),
            SourceFile(path: "Tests/UnchangedSourceTests/A.swift", text: "#if canImport(Security)\n#endif"),
            SourceFile(path: "Sources/Valet/A.swift", text: "// #if canImport(Security)\n#if canImport(SecurityAPI)\n#endif"),
        ],
        eachFile: { file in
            guard file.target != "UnchangedSourceTests" else { return [] }
            let modules = file.path == exportsFile ? ["Security"] : ["Security", "LocalAuthentication"]
            return file.code.indices.filter { file.code[$0].hasBytes(of: "canImport") }.flatMap { line in
                let code = file.code[line].filter { $0 != " " }
                return modules.filter { code.contains("canImport(\($0))") }.map { file.violation(line: line, "tests for \($0)") }
            }
        }
    ),
]

private let exportsFile = "Sources/KeychainServices/Exports.swift"
