// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTestSupport
import Testing

/// A key holder in a process of its own, started by some other program, such as `keyctl session -`.
struct ChildHolder {
    private let process: ChildProcess

    init(
        of storeID: StoreID, _ selection: String = "automatic", options: [String] = [], startedBy starter: [String] = []
    ) throws {
        let command = try starter + [BuiltProgram.path(of: "KeychainTestChild"), "hold-keys"] + options + ["\(storeID.low)", selection]
        process = try ChildProcess(command[0], Array(command.dropFirst()))
        // What starts it may have something to say first.
        while let line = try process.readLine(), line != "ready" {}
        try #require(process.linesRead.last == "ready", "\(process.linesRead)")
    }

    /// What the child answers to one line.
    func callAsFunction(_ request: String) throws -> String {
        process.send(request)
        return try #require(try process.readLine())
    }

    /// Ends it as a program ends, after it has let go of everything.
    func end() throws {
        process.closeInput()
        #expect(try process.readToEnd() == "")
        #expect(try process.waitUntilEnded() == .exited(0))
    }

    /// Ends it at once: what it holds for others stays.
    func kill() throws {
        process.send(signal: 9)
        #expect(try process.waitUntilEnded() == .killed(bySignal: 9))
    }
}
