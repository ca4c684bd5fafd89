// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import Synchronization

/// A person who types what they were told last, once.
final class TypingPerson: PresenceVerifier {
    private let next = Mutex<[UInt8]?>(nil)

    var canAsk: Bool { next.withLock { $0 != nil } }

    func willType(_ text: String) {
        next.withLock { $0 = Array(text.utf8) }
    }

    func ask(_ question: PresenceQuestion) throws(PresenceRefusal) -> PresenceAnswer {
        guard let bytes = next.withLock({ $0.take() }) else { throw .nobodyToAsk("nobody was told to type") }
        do throws(KeychainFailure) {
            // As many bytes as the buffer has.
            let secret = try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
            return .secret(secret)
        } catch {
            throw .failed(error.reason)
        }
    }
}
