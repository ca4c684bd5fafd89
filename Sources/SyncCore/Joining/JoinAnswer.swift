// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// What a device has after it was admitted: its circle, and what its ledger begins with.
package struct JoinedCircle: Hashable, Sendable {
    package let membership: Membership
    package let role: DeviceRole
    /// The founding statement and the admission.
    ///
    /// The engine reads the others from the storage.
    package let statements: [StoredStatement]
    /// How far the approver knew each log, so that the storage cannot show an earlier state without an alarm.
    package let marks: [LogMark]
    /// The newest checkpoint that the approver knew.
    package let checkpoint: CheckpointHash?

    /// Stores everything, and the name that the person has given the device, in a new ledger.
    ///
    /// No person is asked about deletions for a day: most of them are of items that the device learns of only from the same history.
    package func store(name: DeviceName, now: Double, in ledger: any SyncWriting) throws(KeychainFailure) {
        try membership.store(name: name, statements: statements, in: ledger)
        var count = DeletionCount()
        (count.start, count.confirmed) = (now, .max)
        try ledger.set(.deletionGuard, to: count.encoded)
        for mark in marks { try ledger.insert(mark, isToReport: false) }
    }
}

/// Makes and checks answers.
enum JoinAnswer {
    /// Collects what a new device needs from the approver's ledger.
    ///
    /// Throws `.internal` if the ledger has no admission of the device by this one.
    static func make(
        for keys: DevicePublicKeys, membership: Membership, approver: DevicePublicKeys, checkpoint: CheckpointHash?,
        cipher: any CircleCipher,
        in ledger: any SyncReading
    ) throws(KeychainFailure) -> JoinMessage.Answer {
        let (founding, admission, marks) = try knowledge(for: keys, membership: membership, cipher: cipher, in: ledger)
        return JoinMessage.Answer(
            approver: approver, founding: founding, admission: admission, marks: marks, checkpoint: checkpoint)
    }

    /// Returns the founding statement, the admission of a new device by this one, and how far this one knows each log.
    ///
    /// Throws `.internal` if the ledger has no such admission.
    static func knowledge(
        for keys: DevicePublicKeys, membership: Membership, cipher: any CircleCipher, in ledger: any SyncReading
    ) throws(KeychainFailure) -> (founding: [UInt8], admission: [UInt8], marks: [LogMark]) {
        var founding: [UInt8]?
        var admission: [UInt8]?
        for stored in try ledger.statements() {
            guard let statement = parsed(stored.bytes, cipher), statement.circle == membership.circle else { continue }
            switch statement.body {
            case .found: founding = stored.bytes
            case .admit(let body) where body.keys == keys && statement.author == membership.device: admission = stored.bytes
            case .admit, .remove, .rekey, .witness: break
            }
        }
        guard let founding, let admission else { throw KeychainFailure(.internal, "the device was not admitted", subject: .store) }
        var marks: [LogMark] = []
        for log in try ledger.logs() { marks += try ledger.marks(of: log) }
        // The new device learns further marks from the batches of others.
        return (founding, admission, Array(marks.prefix(BatchNotes.largestMarkCount)))
    }

    private static func parsed(_ bytes: [UInt8], _ cipher: any CircleCipher) -> Statement? {
        do throws(FormatError) {
            return try Statement(bytes, cipher: cipher)
        } catch {
            return nil
        }
    }

    /// Why an answer is not believed.
    enum Rejection: Error {
        /// It is not of the approver.
        case forged
        /// The approver has admitted another device.
        case otherDevice
        /// The approver has signed something else than an answer.
        case invalid
        case newerFormat
    }

    /// Checks an answer against the offer and the request, on which both people have agreed by comparing the number.
    static func joined(
        _ answer: JoinMessage.Answer, offer: JoinMessage.Offer, request: JoinMessage.Request, cipher: any CircleCipher
    ) throws(Rejection) -> JoinedCircle {
        guard DeviceID(of: answer.approver, role: .owner, cipher: cipher) == offer.approver || isPlanted(.believesUnsignedAnswers) else {
            throw .forged
        }
        let (founding, admission) = (try statement(answer.founding, cipher), try statement(answer.admission, cipher))
        let isSigned = cipher.isValid(
            answer.signature, of: JoinMessage.signedMessage(answer, to: request, cipher: cipher), by: answer.approver.signing)
        guard let admission, case .admit(let body) = admission.body, admission.author == offer.approver,
            cipher.isValid(admission.signature, of: Statement.signedMessage(admission.hash), by: answer.approver.signing)
        else { throw isSigned ? .invalid : .forged }
        guard body.keys == request.keys else { throw .otherDevice }
        guard isSigned || isPlanted(.believesUnsignedAnswers) else { throw .forged }
        guard let founding, case .found(let founder) = founding.body, founding.circle == offer.circle, admission.circle == offer.circle,
            cipher.isValid(founding.signature, of: Statement.signedMessage(founding.hash), by: founder.keys.signing),
            body.circleCode == nil, founding.author != offer.approver || founder.keys == answer.approver
        else { throw .invalid }
        return JoinedCircle(
            membership: Membership(circle: offer.circle, device: body.device), role: body.role,
            statements: [
                StoredStatement(hash: founding.hash, bytes: answer.founding),
                StoredStatement(hash: admission.hash, bytes: answer.admission),
            ], marks: answer.marks, checkpoint: answer.checkpoint)
    }

    private static func statement(_ bytes: [UInt8], _ cipher: any CircleCipher) throws(Rejection) -> Statement? {
        do throws(FormatError) {
            return try Statement(bytes, cipher: cipher)
        } catch {
            if error == .newer { throw .newerFormat }
            return nil
        }
    }
}
