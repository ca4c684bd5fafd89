// SPDX-License-Identifier: Apache-2.0
#if canImport(Glibc)
import Foundation
import KeychainTestSupport
import Testing

/// The examples as they are in the repository, with the library that the build put beside the tests.
@Suite("The examples")
struct ExampleTests {
    private static let repository = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().path
    private static let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    private static let hasPython = path.split(separator: ":").contains { FileManager.default.isExecutableFile(atPath: "\($0)/python3") }

    @Test("in C stores a secret and reads it back, and shows no key and no secret in the keychain's files")
    func inC() throws {
        try withTemporaryDirectory { directory in
            let products = try productsPath()
            let compilation = try ChildProcess.run(
                "clang",
                [
                    "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", "\(Self.repository)/Sources/CValet/include",
                    "\(Self.repository)/Examples/C/store_secret.c", "-L", products, "-lValetC", "-Wl,-rpath,\(products)", "-o",
                    "\(directory)/store_secret",
                ], environment: ["PATH": Self.path])
            #expect(compilation.ending == .exited(0), "\(compilation.output)")
            let home = directory + "/home"
            let run = try ChildProcess.run("\(directory)/store_secret", environment: ["KEYCHAIN_HOME": home])
            #expect(run.ending == .exited(0))
            #expect(run.output == "12345\n")
            let database = try Data(contentsOf: URL(filePath: home + "/keychain.db"))
            for text in ["12345", "Skroob", "Druidia"] { #expect(database.range(of: Data(text.utf8)) == nil) }
        }
    }

    @Test("in README is the one in C")
    func inReadme() throws {
        let readme = try String(contentsOfFile: Self.repository + "/README.md", encoding: .utf8)
        let start = try #require(readme.range(of: "```c\n"))
        let end = try #require(readme.range(of: "```", range: start.upperBound..<readme.endIndex))
        let example = readme[start.upperBound..<end.lowerBound]
        #expect(try String(contentsOfFile: Self.repository + "/Examples/C/store_secret.c", encoding: .utf8).contains(example))
        #expect(example.contains("valet_create"))
    }

    @Test("in Python stores a secret and reads it back", .enabled(if: hasPython, "python3 is needed"))
    func inPython() throws {
        try withTemporaryDirectory { directory in
            let run = try ChildProcess.run(
                "python3", ["\(Self.repository)/Examples/Python/store_secret.py"],
                environment: ["PATH": Self.path, "KEYCHAIN_HOME": directory + "/home", "VALET_LIBRARY": productsPath() + "/libValetC.so"])
            #expect(run.ending == .exited(0))
            #expect(run.output == "12345\n")
        }
    }

    private func productsPath() throws -> String {
        URL(filePath: try BuiltProgram.path(of: "CValetTestProgram")).deletingLastPathComponent().path
    }
}
#endif
