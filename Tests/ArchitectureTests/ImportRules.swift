// SPDX-License-Identifier: Apache-2.0

/// What each target under `Sources` may import.
///
/// A new target needs a row.
private let allowedImports: [String: Set<String>] = [
    "KeychainServices": ["SecurityAPI", "Security", "LocalAuthentication"],
    "SecurityAPI": ["KeychainCore", "KeychainEngine", "Logging", "Foundation", "FoundationEssentials", "Synchronization"],
    "KeychainCore": ["CKeychainShims", "FoundationEssentials", "Synchronization"],
    "Keybag": ["KeychainCore", "Crypto", "CryptoExtras", "FoundationEssentials", "Synchronization"],
    "KeychainSystem": systemModules.union(["KeychainCore", "CKeychainShims"]),
    "KeychainStore": systemModules.union(["KeychainSystem", "KeychainCore", "CSQLite", "CSQLiteShims"]),
    "KeychainTPM": systemModules.union(["KeychainCore", "CTPMShims"]),
    "KeychainEngine": systemModules.union([
        "KeychainSystem", "KeychainCore", "Keybag", "KeychainStore", "KeychainTPM", "Logging",
    ]),
    "Valet": ["KeychainServices", "Foundation"],
    "Locksmith": ["KeychainServices", "Foundation"],
    "ValetC": systemModules.union(["CValet", "Valet", "CKeychainShims"]),
    "ValetCLI": systemModules.union([
        "Valet", "KeychainServices", "KeychainEngine", "KeychainCore", "KeychainSystem", "ArgumentParser", "Logging",
    ]),
    "KeychainTesting": systemModules.union([
        "KeychainCore", "Keybag", "KeychainEngine", "CKeychainTestingMarker",
    ]),
    "KeychainTestingTraits": ["KeychainTesting", "Testing", "Foundation"],
]

private let systemModules: Set<String> = [
    "Foundation", "FoundationEssentials", "Dispatch", "Synchronization", "Glibc", "Musl", "Android", "Darwin",
]

/// Who may import a confined dependency, tests included.
private let confined: [(module: String, targets: Set<String>, reason: String)] = [
    ("Crypto", ["Keybag", "KeybagTests", "FaultTests"], "cryptography is reviewed in one place; FaultTests hashes what it looks for"),
    ("CryptoExtras", ["Keybag"], "cryptography is reviewed in one place"),
    ("CSQLite", ["KeychainStore", "KeychainStoreTests", "FaultTests", "KeychainTestChild"], "only the store knows how rows lie on disk"),
    ("CSQLiteShims", ["KeychainStore", "KeychainStoreTests"], "only the store knows what is in a page"),
    ("ArgumentParser", ["ValetCLI", "ValetCLITests"], "a program that uses a library of ours must not build a command-line parser"),
    ("CValet", ["ValetC", "ValetCTests"], "what a Swift program needs is in Valet; C's names are for other languages"),
    ("CTPMShims", ["KeychainTPM", "KeychainTPMTests"], "the TPM is optional"),
    ("CDiskRecorder", ["PowerCutWorkload"], "it takes the place of the C library's functions in whatever it is linked into"),
]

/// Which targets under `Sources` may import the C library or its shims, each with its reason.
private let systemTargets: [String: String] = [
    "KeychainSystem": "it confines the operating system",
    "KeychainCore": "secret memory, locks with a deadline, the testing scope, and random bytes need no file, process, or terminal",
    "ValetC": "memory that C receives is wiped when it is freed; on Apple platforms there is no KeychainSystem",
]
/// Not Darwin: on Apple platforms Foundation is the system.
private let systemLibraries: Set<String> = ["Glibc", "Musl", "Android", "CKeychainShims"]

let importRules: [Rule] = [
    Rule(
        "Only KeychainSystem and a few targets with a reason import the C library",
        because: "files, clocks, processes, and the terminal are used through one module, which is reviewed as a whole; "
            + systemTargets.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "; "),
        caught: [
            SourceFile(path: "Sources/KeychainStore/A.swift", text: "internal import Glibc"),
            SourceFile(path: "Sources/KeychainEngine/A.swift", text: "internal import CKeychainShims"),
            SourceFile(path: "Sources/ValetCLI/A.swift", text: "import Glibc"),
            SourceFile(path: "Sources/Valet/A.swift", text: "import Musl"),
        ],
        passed: [
            SourceFile(path: "Sources/KeychainSystem/A.swift", text: "internal import CKeychainShims\ninternal import Glibc"),
            SourceFile(path: "Sources/KeychainCore/A.swift", text: "internal import CKeychainShims"),
            SourceFile(path: "Sources/ValetCLI/A.swift", text: "import Foundation\nimport KeychainSystem"),
            SourceFile(path: "Tests/KeychainStoreTests/A.swift", text: "import Glibc"),
        ],
        eachFile: { file in
            guard file.isSource, let target = file.target, systemTargets[target] == nil else { return [] }
            return file.imports.filter { systemLibraries.contains($0.module) }
                .map { file.violation(line: $0.line, "\(target) uses the operating system past KeychainSystem: imports \($0.module)") }
        }
    ),
    Rule(
        "A target imports only what its row allows",
        because: "arrows point to KeychainCore, and a dependency that leaks can no longer be replaced",
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
        "A confined dependency is imported by its module and that module's tests alone",
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
        "Valet and Locksmith import KeychainServices for themselves alone",
        because: "their API is the same on every platform, so no name of Keychain Services may show in it",
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
                .map { file.violation(line: $0.line, "shows KeychainServices to others") }
        }
    ),
    Rule(
        "KeychainCore has no dictionaries of anything, and does no input or output",
        because: "what is in it holds for every store and every caller, and its types are the ones that were checked",
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
            .map { file.violation(line: $0, "names a dictionary of anything, or reaches out of the process") }
        }
    ),
    Rule(
        "Only KeychainServices' Exports.swift exports another module",
        because: "a program that imports Keychain Services must not get Foundation's names with it, on one platform and not on the other",
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
        "`#if canImport(Security)` stands in KeychainServices' Exports.swift alone",
        because: "above that line there is one code path for every platform",
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
                file.code[$0].filter { $0 != " " }.contains("canImport(Security)")
            }.map { file.violation(line: $0, "asks for Security") }
        }
    ),
]

private let exportsFile = "Sources/KeychainServices/Exports.swift"
