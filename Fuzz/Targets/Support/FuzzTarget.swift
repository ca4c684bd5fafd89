// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Code that parses untrusted bytes.
protocol FuzzTarget {
    /// The name on the command line and of the corpus.
    static var name: String { get }

    /// Initial inputs that reach much of the code.
    static func seeds() throws -> [[UInt8]]

    init() throws

    /// Parses an input, and checks the result with `expect`.
    ///
    /// The same input must take the same path every time: no clock, no random numbers, no files. An error is a finding too.
    func run(_ input: [UInt8]) throws
}

/// The type of a target.
struct FuzzTargetChoice {
    let name: String
    let seeds: () throws -> [[UInt8]]
    let make: () throws -> any FuzzTarget

    init<Target: FuzzTarget>(_ type: Target.Type) {
        name = Target.name
        seeds = Target.seeds
        make = { try Target() }
    }

    static var all: [FuzzTargetChoice] {
        [
            FuzzTargetChoice(ArchiveTarget.self), FuzzTargetChoice(ArgumentsTarget.self), FuzzTargetChoice(BackupTarget.self),
            FuzzTargetChoice(BatchTarget.self), FuzzTargetChoice(CheckpointTarget.self), FuzzTargetChoice(ConstraintTarget.self),
            FuzzTargetChoice(CredentialTarget.self), FuzzTargetChoice(DaemonMessageTarget.self), FuzzTargetChoice(EntitlementsTarget.self),
            FuzzTargetChoice(HeldKeysTarget.self),
            FuzzTargetChoice(JoinMessageTarget.self), FuzzTargetChoice(KeybagTarget.self), FuzzTargetChoice(PinentryTarget.self),
            FuzzTargetChoice(PeerFactsTarget.self),
            FuzzTargetChoice(RecoveryKeyTarget.self), FuzzTargetChoice(RowTarget.self), FuzzTargetChoice(SealedObjectTarget.self),
            FuzzTargetChoice(SecItemTarget.self), FuzzTargetChoice(StatementTarget.self), FuzzTargetChoice(StoredRowTarget.self),
        ]
    }
}

/// Ends the program, which libFuzzer reports as a finding, unless the condition holds.
func expect(_ condition: Bool, _ message: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line) {
    if !condition { preconditionFailure(message(), file: file, line: line) }
}

/// Runs `body`, which may throw only the expected failure; returns nil then.
func attempt<Value: ~Copyable, Failure: Error>(
    expecting isExpected: (Failure) -> Bool, _ body: () throws(Failure) -> Value
) -> Value? {
    do throws(Failure) {
        return try body()
    } catch {
        expect(isExpected(error), "fails with \(error)")
        return nil
    }
}

/// Runs `body`, which may throw only these statuses; returns nil then.
func attempt<Value: ~Copyable>(
    failingWith statuses: KeychainStatus..., body: () throws(KeychainFailure) -> Value
) -> Value? {
    func isExpected(_ failure: KeychainFailure) -> Bool { statuses.contains(failure.status) }
    return attempt(expecting: isExpected, body)
}
