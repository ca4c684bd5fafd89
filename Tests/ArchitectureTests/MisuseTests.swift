// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

#if os(Linux)
@Suite("Messages of the compiler")
struct MisuseTests {
    private static let preamble = """
        import Valet
        let text = "Druidia"
        let valet = Valet.valet(with: "Druidia", accessibility: .whenUnlocked)
        let other = Valet.valet(with: Identifier(nonEmpty: text)!, accessibility: .whenUnlocked)
        let both = ["a", "b"].map { Valet.valet(with: Identifier(nonEmpty: $0)!, accessibility: .whenUnlocked) }
        let enclave = SecureEnclaveValet.valet(with: "Druidia", accessControl: .userPresence)

        """

    private static let misuses: [(code: String, message: String)] = [
        ("Valet()", "Valet.valet(with:accessibility:)"),
        ("Valet(\"Druidia\")", "Valet.valet(with:accessibility:)"),
        ("Valet(text)", "Valet.valet(with:accessibility:)"),
        ("Valet(identifier: \"Druidia\")", "Valet.valet(with:accessibility:)"),
        ("Valet(identifier: text, accessibility: .whenUnlocked)", "Valet.valet(with:accessibility:)"),
        ("Valet(identifier: Identifier(nonEmpty: text)!, accessibility: .afterFirstUnlock)", "Valet.valet(with:accessibility:)"),
        ("Valet(with: \"Druidia\", accessibility: .whenUnlocked)", "Valet.valet(with:accessibility:)"),
        ("Valet.valet(with: text, accessibility: .whenUnlocked)", "Identifier(nonEmpty:)"),
        ("SecureEnclaveValet()", "SecureEnclaveValet.valet(with:accessControl:)"),
        ("SecureEnclaveValet(identifier: text)", "SecureEnclaveValet.valet(with:accessControl:)"),
        ("SinglePromptSecureEnclaveValet(identifier: text)", "SinglePromptSecureEnclaveValet.valet(with:accessControl:)"),
    ]

    @Test("A valet that is created in a wrong way fails to compile, with a message that names the right one")
    func wrongInitializers() throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: directory) }
        #expect(try Self.errors(of: Self.preamble, in: directory) == [:], "the rest of the program compiles")
        let firstLine = Self.preamble.split(separator: "\n").count + 1
        let errors = try Self.errors(of: Self.preamble + Self.misuses.map { "_ = \($0.code)\n" }.joined(), in: directory)
        for (index, misuse) in Self.misuses.enumerated() {
            let messages = errors[firstLine + index] ?? []
            #expect(messages.count == 1 && messages[0].contains(misuse.message), "\(misuse.code): \(messages)")
        }
        #expect(errors.count == Self.misuses.count)
    }

    /// Compiles a program against the modules of this build, and returns the errors on each line.
    ///
    /// The directory keeps compiled system modules for the next program.
    private static func errors(of program: String, in directory: URL) throws -> [Int: [String]] {
        let file = directory.appending(path: "main.swift")
        try program.write(to: file, atomically: true, encoding: .utf8)
        // The test runner is in the folder that has the modules.
        let executable = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        let modules = executable.deletingLastPathComponent().appending(path: "Modules")
        let shims = ["CKeychainShims/include", "CSQLiteShims/include", "CTPMShims/include", "CSQLite"]
        let folders = [modules.path] + shims.map { Repository.root.appending(path: "Sources/\($0)").path }
        let cache = directory.appending(path: "cache").path
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments =
            ["swiftc", "-typecheck", "-diagnostic-style", "llvm", "-module-cache-path", cache] + folders.map { "-I\($0)" } + [file.path]
        let output = Pipe()
        process.standardError = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        var errors: [Int: [String]] = [:]
        for match in text.matches(of: /main\.swift:(\d+):\d+: error: (.*)/) {
            errors[try #require(Int(match.1)), default: []].append(String(match.2))
        }
        // An error elsewhere, such as a module that is not found, would be missed above.
        try #require(errors.isEmpty == (process.terminationStatus == 0), "\(text)")
        return errors
    }
}
#endif
