// SPDX-License-Identifier: Apache-2.0
import Crypto
import Foundation

/// The limit of encryption: AES-256-GCM alone, with as many bytes as a row of the keychain.
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
