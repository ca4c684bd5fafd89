// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import Synchronization

/// The passcodes that an in-memory keychain was given, by its test or by the program under test, so that the test can unlock it
/// without naming one.
final class KnownPasscodes: Sendable {
    /// What an array can hold.
    final class Entry: Sendable {
        let passcode: Passcode

        fileprivate init(_ passcode: consuming Passcode) {
            self.passcode = passcode
        }
    }

    private let entries = Mutex<[Entry]>([])

    /// The newest one is the likeliest to be in force; a change whose outcome is unknown leaves two to try.
    var newestFirst: [Entry] { entries.withLock { $0.reversed() } }

    func note(_ passcode: borrowing Passcode) throws(KeychainFailure) {
        // The bytes are copied within the closure.
        let bytes = try unsafe passcode.bytes.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
        let entry = Entry(try Passcode(normalized: bytes))
        entries.withLock { $0.append(entry) }
    }
}
#endif
