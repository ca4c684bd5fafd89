// SPDX-License-Identifier: Apache-2.0
import Crypto
import Foundation

/// The limit of encrypting: AES-256-GCM alone, over as many bytes as one of our rows seals.
struct SealedMessage {
    private let message = Data(repeating: 0x5a, count: RawDatabase.rowByteCount)
    private let key = SymmetricKey(size: .bits256)
    private let sealed: AES.GCM.SealedBox

    init() throws {
        sealed = try AES.GCM.seal(message, using: key)
    }

    func seal() throws { _ = try AES.GCM.seal(message, using: key) }

    func open() throws { _ = try AES.GCM.open(sealed, using: key) }
}
