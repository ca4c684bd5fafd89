// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// What any number of machines need to enter a circle as one reader, without a person.
///
///     "KSCR" ‖ version (1) ‖ secret (32) ‖ date of expiry (8) ‖ counted(name) ‖ counted(location) ‖ counted(founding statement)
///     ‖ counted(admission) ‖ marks
///
/// A reader writes nothing, so its machines do not disturb each other, and their number does not show in the storage. The keys of the reader are
/// derived from the secret. The marks keep the storage from showing an earlier state than that in which the credential was made.
package struct ReaderCredential: Sendable {
    private let secret: SharedSecretBytes
    /// The private keys of the reader.
    package let keys: any CircleDeviceKeys
    package let note: CredentialNote
    /// Where the owner's device reaches the storage, for people.
    package let location: String
    package let circle: JoinedCircle

    /// No credential is larger: it has two statements and the largest number of marks.
    package static let largestByteCount = 131_072
    private static let largestLocationByteCount = 4_096
    private static let version: UInt8 = 1
    private static let secretByteCount = 32
    /// "KSCR" and the version.
    private static let headByteCount = 5

    /// Collects what the credential has to contain from the ledger of the owner that has admitted its reader.
    ///
    /// Throws `.internal` if this device has not admitted it, and `.parameter` if the location is too long.
    package init(
        secret: SharedSecretBytes, note: CredentialNote, location: String, admittedBy membership: Membership, cipher: any CircleCipher,
        in ledger: any SyncReading
    ) throws(KeychainFailure) {
        guard location.utf8.count <= Self.largestLocationByteCount else {
            throw KeychainFailure(.parameter, "the location of the storage is longer than \(Self.largestLocationByteCount) bytes")
        }
        let keys = try cipher.deviceKeys(ofCredential: secret)
        let (founding, admission, marks) = try JoinAnswer.knowledge(
            for: keys.publicKeys, membership: membership, cipher: cipher, in: ledger)
        do throws(FormatError) {
            circle = try Self.circle(founding, admission, marks, of: keys.publicKeys, cipher)
        } catch {
            throw KeychainFailure(.internal, "the admission of the credential is not valid", subject: .store)
        }
        (self.secret, self.keys, self.note, self.location) = (secret, keys, note, location)
    }

    /// Parses a credential.
    ///
    /// Throws `.decode` if it is damaged or was made by a newer version of the program, which is then the cause.
    package init(_ bytes: borrowing SecretBytes, cipher: any CircleCipher) throws(KeychainFailure) {
        let contentOffset = Self.headByteCount + Self.secretByteCount
        guard (contentOffset...Self.largestByteCount).contains(bytes.byteCount) else { throw Self.failure(.malformed) }
        // Everything but the secret can be in ordinary memory. The bytes are copied within the closures.
        let content = unsafe bytes.withBytes { unsafe Array($0[..<Self.headByteCount]) + Array($0[contentOffset...]) }
        secret = SharedSecretBytes(
            try unsafe bytes.withBytes { (bytes) throws(KeychainFailure) in
                try unsafe SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[Self.headByteCount..<contentOffset]))
            })
        keys = try cipher.deviceKeys(ofCredential: secret)
        do throws(FormatError) {
            var reader = FieldReader(content)
            try reader.header("KSCR", version: Self.version)
            let expiration = try reader.seconds()
            guard let name = DeviceName(utf8: try reader.counted(atMost: DeviceName.largestByteCount)) else { throw .malformed }
            note = CredentialNote(name: name, expiration: expiration)
            let location = try reader.counted(atMost: Self.largestLocationByteCount)
            guard let text = String(validating: location, as: UTF8.self) else { throw .malformed }
            self.location = text
            let founding = try reader.counted(atMost: JoinMessage.largestFoundingByteCount)
            let admission = try reader.counted(atMost: JoinMessage.largestAdmissionByteCount)
            let marks = try reader.marks(atMost: BatchNotes.largestMarkCount)
            try reader.end()
            circle = try Self.circle(founding, admission, marks, of: keys.publicKeys, cipher)
        } catch {
            throw Self.failure(error)
        }
    }

    private static func failure(_ error: FormatError) -> KeychainFailure {
        error == .newer
            ? KeychainFailure(.decode, "the credential was made by a newer version of the program", cause: .newerVersion)
            : KeychainFailure(.decode, "this is no credential, or it is damaged", cause: .damaged)
    }

    /// Returns the credential as it is stored outside of the keychain.
    package func encoded() throws(KeychainFailure) -> SecretBytes {
        var head: [UInt8] = []
        head.append("KSCR")
        head.append(Self.version)
        var content: [UInt8] = []
        content.append(seconds: note.expiration)
        content.append(lengthPrefixed: note.name.utf8)
        content.append(lengthPrefixed: Array(location.utf8))
        for statement in circle.statements { content.append(lengthPrefixed: statement.bytes) }
        content.append(marks: circle.marks)
        let contentOffset = Self.headByteCount + Self.secretByteCount
        // The region has as many bytes as the three parts together.
        return try unsafe SecretBytes(byteCount: contentOffset + content.count) { buffer in
            unsafe buffer.copyBytes(from: head)
            unsafe secret.secret.withBytes { secret in
                unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[Self.headByteCount..<contentOffset]).copyMemory(from: secret)
            }
            unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[contentOffset...]).copyBytes(from: content)
        }
    }

    /// Checks that the statements found a circle, and admit the reader with these keys to it.
    ///
    /// The author of the admission may be any owner. Whether it is one is a matter of the roster.
    private static func circle(
        _ founding: [UInt8], _ admission: [UInt8], _ marks: [LogMark], of keys: DevicePublicKeys, _ cipher: any CircleCipher
    ) throws(FormatError) -> JoinedCircle {
        let (first, second) = (try Statement(founding, cipher: cipher), try Statement(admission, cipher: cipher))
        guard case .found(let founder) = first.body, case .admit(let body) = second.body, body.note != nil, body.keys == keys,
            second.circle == first.circle,
            cipher.isValid(first.signature, of: Statement.signedMessage(first.hash), by: founder.keys.signing)
        else { throw .malformed }
        return JoinedCircle(
            membership: Membership(circle: first.circle, device: body.device), role: body.role,
            statements: [StoredStatement(hash: first.hash, bytes: founding), StoredStatement(hash: second.hash, bytes: admission)],
            marks: marks, checkpoint: nil)
    }
}

/// The credential by which a machine is in its circle, as stored in the ledger: `version (1) ‖ date of expiry (8)`.
extension ReaderCredential {
    /// Returns when the credential of this machine expires; nil if it is in the circle by an invitation.
    package static func expiration(in ledger: any SyncReading) throws(KeychainFailure) -> Double? {
        guard let bytes = try ledger.setting(.credential) else { return nil }
        do throws(FormatError) {
            var reader = FieldReader(bytes)
            try reader.version(1)
            return try reader.seconds()
        } catch {
            throw KeychainFailure(.decode, "the keychain's record of its credential is damaged", subject: .store, cause: .damaged)
        }
    }

    /// Stores that this machine is in the circle by this credential, in a new ledger.
    package func store(now: Double, in ledger: any SyncWriting) throws(KeychainFailure) {
        try circle.store(name: note.name, now: now, in: ledger)
        try storeExpiration(in: ledger)
    }

    /// Stores that this machine is in the circle by this credential, in place of an earlier one.
    ///
    /// What the ledger knows stays.
    package func replace(_ former: Membership, in ledger: any SyncWriting) throws(KeychainFailure) {
        try circle.membership.replace(former, in: ledger)
        try circle.membership.store(name: note.name, statements: circle.statements, in: ledger)
        for mark in circle.marks where try !ledger.isRead(mark.origin) { try ledger.insert(mark, isToReport: false) }
        try storeExpiration(in: ledger)
    }

    private func storeExpiration(in ledger: any SyncWriting) throws(KeychainFailure) {
        var bytes: [UInt8] = [1]
        bytes.append(seconds: note.expiration)
        try ledger.set(.credential, to: bytes)
    }
}
