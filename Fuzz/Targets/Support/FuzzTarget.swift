// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// Something that reads bytes which others may have written.
protocol FuzzTarget {
    /// As the command line and the corpus name it.
    static var name: String { get }

    /// Inputs that reach far, to begin with.
    static func seeds() throws -> [[UInt8]]

    init() throws

    /// Reads an input and checks what comes of it, with `expect`.
    ///
    /// The same input must take the same way every time: no clock, no random number, no file. An error is a finding too.
    func run(_ input: [UInt8]) throws
}

/// A target before it is made.
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
            FuzzTargetChoice(ConstraintTarget.self), FuzzTargetChoice(EntitlementsTarget.self), FuzzTargetChoice(HeldKeysTarget.self),
            FuzzTargetChoice(KeybagTarget.self), FuzzTargetChoice(PinentryTarget.self), FuzzTargetChoice(RecoveryKeyTarget.self),
            FuzzTargetChoice(RowTarget.self), FuzzTargetChoice(SealedObjectTarget.self), FuzzTargetChoice(SecItemTarget.self),
            FuzzTargetChoice(StoredRowTarget.self),
        ]
    }
}

/// Ends the program, which libFuzzer takes for a finding, unless the condition holds.
func expect(_ condition: Bool, _ message: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line) {
    if !condition { preconditionFailure(message(), file: file, line: line) }
}

/// Runs what may fail, and only with the failure that is expected; nil then.
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

/// Runs what may fail with these statuses alone; nil then.
func attempt<Value: ~Copyable>(
    failingWith statuses: KeychainStatus..., body: () throws(KeychainFailure) -> Value
) -> Value? {
    func isExpected(_ failure: KeychainFailure) -> Bool { statuses.contains(failure.status) }
    return attempt(expecting: isExpected, body)
}
