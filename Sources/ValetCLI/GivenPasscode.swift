// SPDX-License-Identifier: Apache-2.0
import KeychainCore

/// Answers with the passcode from a descriptor, in the place of a person.
///
/// Each question once: an answer that was wrong stays wrong.
final class GivenPasscode: PresenceVerifier {
    let passcode: Passcode

    init(_ passcode: consuming Passcode) {
        self.passcode = passcode
    }

    var canAsk: Bool { true }

    func ask(_ question: borrowing PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        guard question.secret == .passcode else { throw .nobodyToAsk("--passcode-fd gives the passcode, and no other password") }
        guard question.triesLeft == nil else { throw .nobodyToAsk("the passcode from --passcode-fd is wrong") }
        do throws(KeychainFailure) {
            // The bytes are read within the closure.
            let copy = try unsafe passcode.bytes.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) }
            return .secret(copy)
        } catch {
            throw .failed(error.reason)
        }
    }
}
