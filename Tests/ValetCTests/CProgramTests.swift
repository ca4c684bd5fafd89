// SPDX-License-Identifier: Apache-2.0
#if canImport(Glibc)
import KeychainTestSupport
import Testing

@Suite("A C program")
struct CProgramTests {
    /// What is in Tests/CValetTestProgram: each looks at what valet.h says.
    @Test(
        "finds everything as the header says",
        arguments: ["arguments", "values", "keys", "making", "migrations", "enclaves", "wiping", "forks", "threads"])
    func cases(_ name: String) throws {
        try Self.run(name)
    }

    @Test("creates, uses and frees 10,000 times and takes no more memory for it")
    func growth() throws {
        try Self.run("growth", "10000")
    }

    @Test("is told of a case that does not exist, so that a name that is wrong here is seen")
    func noCase() throws {
        #expect(try Self.end(of: "no such case").ending == .exited(2))
    }

    private static func run(_ arguments: String...) throws {
        let (ending, output) = try end(of: arguments)
        #expect(ending == .exited(0), "\(output)")
    }

    private static func end(of arguments: String...) throws -> (ending: ChildProcess.Ending, output: String) {
        try end(of: arguments)
    }

    /// On a keychain of its own.
    private static func end(of arguments: [String]) throws -> (ending: ChildProcess.Ending, output: String) {
        try withTemporaryDirectory(inMemory: true) { home in
            let child = try ChildProcess(
                BuiltProgram.path(of: "CValetTestProgram"), arguments, environment: ["KEYCHAIN_HOME": home, "KEYCHAIN_PINENTRY": ""])
            child.closeInput()
            let output = try child.readToEnd(withinSeconds: 300)
            return (try child.waitUntilEnded(), output)
        }
    }
}
#endif
