// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore
internal import KeychainEngine

/// The code of an invitation or a recovery kit, which a person reads to another one or writes down.
///
/// Descriptions and dumps do not show it. The bytes are wiped with the last copy of this value.
public struct SyncSecret: Sendable, CustomStringConvertible, CustomReflectable {
    package let bytes: SharedSecretBytes
    package let textBytes: SharedSecretBytes

    /// The characters in groups of four: seven for a code, nine for a recovery kit.
    ///
    /// A string cannot be wiped from memory, so show it and let it go.
    public var text: String { unsafe textBytes.secret.withBytes { unsafe String(decoding: $0, as: UTF8.self) } }

    init(_ bytes: SharedSecretBytes, as form: WrittenSecret) throws(KeychainFailure) {
        self.bytes = bytes
        textBytes = SharedSecretBytes(try LocalKeychain.circleCipher.text(of: bytes, as: form))
    }

    init(typed text: borrowing SecretBytes, as form: WrittenSecret) throws(SyncFailure) {
        do throws(KeychainFailure) {
            try self.init(try LocalKeychain.circleCipher.secret(typed: text, as: form), as: form)
        } catch {
            throw error.status == .parameter ? SyncFailure(.invalidInput, error.reason) : SyncFailure(error)
        }
    }

    /// Says that there is a secret, and not which.
    public var description: String { "(secret)" }
    /// Has no children.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension SyncSecret {
    /// Parses the code of an invitation.
    ///
    /// Case, blanks, and dashes do not matter.
    ///
    /// - Parameter text: What a person has typed.
    /// - Returns: The code.
    /// - Throws: `.invalidInput` if it is mistyped.
    public static func code(_ text: String) throws(SyncFailure) -> SyncSecret { try typed(text, as: .invitationCode) }

    /// Parses a recovery kit.
    ///
    /// Case, blanks, and dashes do not matter.
    ///
    /// - Parameter text: What a person has typed.
    /// - Returns: The recovery kit.
    /// - Throws: `.invalidInput` if it is mistyped.
    public static func recoveryKit(_ text: String) throws(SyncFailure) -> SyncSecret { try typed(text, as: .recoveryKit) }

    /// Parses the code of an invitation that was typed into secret memory.
    package static func code(_ text: borrowing SecretBytes) throws(SyncFailure) -> SyncSecret {
        try SyncSecret(typed: text, as: .invitationCode)
    }

    /// Parses a recovery kit that was typed into secret memory.
    package static func recoveryKit(_ text: borrowing SecretBytes) throws(SyncFailure) -> SyncSecret {
        try SyncSecret(typed: text, as: .recoveryKit)
    }

    private static func typed(_ text: String, as form: WrittenSecret) throws(SyncFailure) -> SyncSecret {
        var bytes = Array(text.utf8)
        defer { bytes.wipe() }
        let secret: SecretBytes
        do throws(KeychainFailure) {
            // The region has as many bytes.
            secret = try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
        } catch {
            throw SyncFailure(error)
        }
        return try SyncSecret(typed: secret, as: form)
    }
}
#endif
