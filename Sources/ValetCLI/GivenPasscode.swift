// SPDX-License-Identifier: Apache-2.0
import KeychainCore

/// Answers with the passcode from a descriptor, in the place of a person.
///
/// Each question once: an answer that was wrong stays wrong.
final class GivenPasscode: PresenceVerifier {
    private let passcode: Passcode

    init(_ passcode: borrowing Passcode) throws(KeychainFailure) {
        self.passcode = try Passcode(normalized: Self.copy(of: passcode))
    }

    var canAsk: Bool { true }

    func ask(_ question: borrowing PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        guard question.secret == .passcode else { throw .nobodyToAsk("--passcode-fd gives the passcode, and no other password") }
        guard question.triesLeft == nil else { throw .nobodyToAsk("the passcode from --passcode-fd is wrong") }
        do throws(KeychainFailure) {
            let copy = try Self.copy(of: passcode)
            return .secret(copy)
        } catch {
            throw .failed(error.reason)
        }
    }

    private static func copy(of passcode: borrowing Passcode) throws(KeychainFailure) -> SecretBytes {
        // The bytes are read within the closure.
        try unsafe passcode.bytes.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
    }
}
