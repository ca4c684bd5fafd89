// SPDX-License-Identifier: Apache-2.0

/// The modules that each target under `Sources` may import.
///
/// A new target needs a row.
private let allowedImports: [String: Set<String>] = [
    "KeychainServices": ["SecurityAPI", "Security", "LocalAuthentication", "Dispatch", "Foundation"],
    "SecurityAPI": ["KeychainCore", "KeychainEngine", "Logging", "Foundation", "FoundationEssentials", "Synchronization"],
    "KeychainCore": ["CKeychainShims", "FoundationEssentials", "Synchronization"],
    "Keybag": ["KeychainCore", "Crypto", "CryptoExtras", "FoundationEssentials", "Synchronization"],
    "KeychainSystem": systemModules.union(["KeychainCore", "CKeychainShims"]),
    "KeychainStore": systemModules.union(["KeychainSystem", "KeychainCore", "CSQLite", "CSQLiteShims", "CKeychainShims"]),
    "KeychainTPM": systemModules.union(["KeychainCore", "CTPMShims"]),
    "KeychainEngine": systemModules.union([
        "KeychainSystem", "KeychainCore", "Keybag", "KeychainStore", "KeychainTPM", "CKeychainShims", "Logging",
    ]),
    "Valet": ["KeychainServices", "Foundation"],
    "Locksmith": ["KeychainServices", "Foundation"],
    "ValetC": systemModules.union(["CValet", "Valet", "CKeychainShims"]),
    "ValetCLI": systemModules.union([
        "Valet", "KeychainServices", "KeychainEngine", "KeychainCore", "KeychainSystem", "CKeychainShims", "ArgumentParser", "Logging",
    ]),
    "KeychainTesting": systemModules.union([
        "KeychainCore", "Keybag", "KeychainEngine", "CKeychainShims", "CKeychainTestingMarker",
    ]),
    "KeychainTestingTraits": ["KeychainTesting", "Testing", "Foundation"],
]

private let systemModules: Set<String> = [
    "Foundation", "FoundationEssentials", "Dispatch", "Synchronization", "Glibc", "Musl", "Android", "Darwin",
]

/// The targets, including tests, that may import a confined dependency.
private let confined: [(module: String, targets: Set<String>, reason: String)] = [
    (
        "Crypto", ["Keybag", "KeybagTests", "FaultTests"],
        "cryptography is reviewed in one place; FaultTests hashes the values that it searches for"
    ),
    ("CryptoExtras", ["Keybag"], "cryptography is reviewed in one place"),
    (
        "CSQLite", ["KeychainStore", "KeychainStoreTests", "FaultTests", "KeychainTestChild"],
        "only the store knows the layout of rows on disk"
    ),
    ("CSQLiteShims", ["KeychainStore", "KeychainStoreTests"], "only the store knows the layout of a page"),
    ("ArgumentParser", ["ValetCLI", "ValetCLITests"], "a program that uses a library of ours must not build a command-line parser"),
    ("CValet", ["ValetC", "ValetCTests"], "Swift programs use Valet; the names of C are for other languages"),
    ("CTPMShims", ["KeychainTPM", "KeychainTPMTests"], "the TPM is optional"),
    ("CDiskRecorder", ["PowerCutWorkload"], "it replaces functions of the C library in every program that links it"),
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
        passed: [SourceFile(path: "Tests/FaultTests/A.swift", text: "import CSQLite")],
        eachFile: { file in
            confined.flatMap { module, targets, reason in
                file.imports.filter { $0.module == module && !targets.contains(file.target ?? "") }
                    .map { file.violation(line: $0.line, "imports \(module): \(reason)") }
            }
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
        "KeychainCore has no dictionaries with `Any`, and performs no input or output",
        because: "its rules hold for every store and every caller, and its types are checked when they are created",
        caught: ["var a: [String: Any]", "var a: [String : Any] = [:]", "let a = FileManager.default", "ProcessInfo.processInfo"].map {
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
                return ["[String:Any]", "[AnyHashable:Any]", "FileManager", "ProcessInfo"].contains { code.contains($0) }
            }
            .map { file.violation(line: $0, "uses a dictionary with `Any`, or accesses the system") }
        }
    ),
    Rule(
        "Only KeychainServices' Exports.swift exports another module",
        because: "a program that imports Keychain Services must not get the names of Foundation with it on one platform only",
        caught: [
            SourceFile(path: "Sources/SecurityAPI/A.swift", text: "@_exported public import Foundation"),
            SourceFile(path: "Sources/KeychainServices/Exports.swift", text: "@_exported import Foundation"),
        ],
        passed: [
            SourceFile(path: "Sources/KeychainServices/Exports.swift", text: "@_exported public import SecurityAPI"),
            SourceFile(path: "Sources/SecurityAPI/A.swift", text: "public import Foundation"),
        ],
        eachFile: { file in
            file.imports.filter {
                $0.isExported && (file.path != exportsFile || $0.module.hasPrefix("Foundation"))
            }.map { file.violation(line: $0.line, "exports \($0.module)") }
        }
    ),
    Rule(
        "`#if canImport(Security)` is only in KeychainServices' Exports.swift",
        because: "all other code is the same on every platform",
        caught: [
            SourceFile(path: "Sources/Valet/A.swift", text: "#if canImport(Security)\n#endif"),
            SourceFile(path: "Tests/ValetTests/A.swift", text: "#if !canImport( Security )\n#endif"),
        ],
        passed: [
            SourceFile(path: "Sources/KeychainServices/Exports.swift", text: "#if canImport(Security)\n#endif"),
            SourceFile(path: "Sources/Valet/A.swift", text: "// #if canImport(Security)\n#if canImport(SecurityAPI)\n#endif"),
        ],
        eachFile: { file in
            guard file.path != exportsFile else { return [] }
            return file.code.indices.filter {
                file.code[$0].contains("canImport") && file.code[$0].filter { $0 != " " }.contains("canImport(Security)")
            }.map { file.violation(line: $0, "tests for Security") }
        }
    ),
]

private let exportsFile = "Sources/KeychainServices/Exports.swift"
