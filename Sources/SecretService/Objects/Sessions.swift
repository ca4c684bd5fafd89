// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import CSystemdShims
internal import FoundationEssentials
internal import Keybag
internal import KeychainCore

/// The sessions in which secrets are transferred.
///
/// A session belongs to the connection that has opened it, and ends with it.
struct Sessions {
    private struct Session {
        let owner: String
        /// Nil for "plain".
        let cipher: SessionCipher?
    }

    /// The largest number of open sessions of a connection: a program needs one.
    static let limitForConnection = 256
    static let agreementName = "dh-ietf1024-sha256-aes128-cbc-pkcs7"

    private var sessions: [UInt64: Session] = [:]
    private var lastNumber: UInt64 = 0

    func contains(_ number: UInt64) -> Bool { sessions[number] != nil }

    /// Opens a session; with the public key of the caller one that encrypts, and returns the public key for the caller.
    mutating func open(owner: String, publicKey: Data?) throws(BusError) -> (path: String, publicKey: Data?) {
        guard sessions.values.count(where: { $0.owner == owner }) < Self.limitForConnection else {
            throw .limitsExceeded("this program has too many open sessions")
        }
        var reply: Data?
        var cipher: SessionCipher?
        if let publicKey {
            let agreed = try KeyAgreement.agree(publicKey)
            (reply, cipher) = (agreed.publicKey, agreed.cipher)
        }
        lastNumber += 1
        sessions[lastNumber] = Session(owner: owner, cipher: cipher)
        return (ObjectPath.session(lastNumber).text, reply)
    }

    mutating func close(_ number: UInt64, by caller: String) throws(BusError) {
        guard let session = sessions[number] else { throw .noSession }
        guard session.owner == caller else { throw .invalidCaller }
        sessions[number] = nil
    }

    mutating func closeAll(of owner: String) { sessions = sessions.filter { $0.value.owner != owner } }

    private func session(_ path: String, of caller: String) throws(BusError) -> Session {
        guard case .session(let number)? = ObjectPath(path), let session = sessions[number], session.owner == caller else {
            throw .noSession
        }
        return session
    }

    func require(_ path: String, of caller: String) throws(BusError) { _ = try session(path, of: caller) }

    /// Returns a secret in the form in which the session transfers it.
    func encrypt(_ secret: ItemSecret, in path: String, of caller: String) throws(BusError) -> TransferredSecret {
        guard let cipher = try session(path, of: caller).cipher else {
            return TransferredSecret(session: path, parameters: Data(), value: secret.bytes, contentType: secret.contentType)
        }
        guard let encrypted = cipher.encrypt(secret.bytes) else { throw .failed("the secret cannot be encrypted") }
        return TransferredSecret(
            session: path, parameters: encrypted.parameters, value: encrypted.value, contentType: secret.contentType)
    }

    func decrypt(_ transferred: TransferredSecret, of caller: String) throws(BusError) -> ItemSecret {
        guard let cipher = try session(transferred.session, of: caller).cipher else {
            return ItemSecret(bytes: transferred.value, contentType: transferred.contentType)
        }
        guard let bytes = cipher.decrypt(transferred.value, parameters: transferred.parameters) else {
            throw .invalidArguments("the secret is not encrypted as the session requires")
        }
        return ItemSecret(bytes: bytes, contentType: transferred.contentType)
    }
}

/// The agreement on a key between a caller and the bridge.
enum KeyAgreement {
    static let byteCount = Int(KEYCHAIN_AGREEMENT_BYTE_COUNT)

    /// Makes a pair of keys for one agreement.
    ///
    /// Throws for a public key of which everyone knows the result. The private key and the shared secret are wiped.
    static func agree(_ publicKey: Data) throws(BusError) -> (publicKey: Data, cipher: SessionCipher) {
        var privateKey = [UInt8](repeating: 0, count: byteCount)
        var ownPublicKey = privateKey
        // As many bytes as the functions write.
        defer { privateKey.wipe() }
        guard unsafe keychain_agreement_make_keys(&privateKey, &ownPublicKey) else { throw .failed("no memory for a key") }
        guard var secret = secret(privateKey: privateKey, publicKey: publicKey) else {
            throw .invalidArguments("the public key is not one of this group")
        }
        defer { secret.wipe() }
        return (Data(ownPublicKey), SessionCipher(sharedSecret: secret))
    }

    /// The shared secret, with leading zeros, which the caller wipes; nil if the public key is not permitted.
    static func secret(privateKey: [UInt8], publicKey: Data) -> [UInt8]? {
        guard privateKey.count == byteCount else { return nil }
        var secret = [UInt8](repeating: 0, count: byteCount)
        let other = Array(publicKey)
        // As many bytes as the function reads and writes.
        return unsafe keychain_agreement_secret(privateKey, other, other.count, &secret) ? secret : nil
    }
}
#endif
