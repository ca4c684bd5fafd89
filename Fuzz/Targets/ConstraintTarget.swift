// SPDX-License-Identifier: Apache-2.0
internal import Crypto
internal import Foundation

@testable internal import Keybag
@testable internal import KeychainCore

/// Constraint records, below the row's tag: what they need is asked for, and nothing else happens.
final class ConstraintTarget: FuzzTarget {
    static let name = "constraint"

    private let cipher: RowCipher
    private let pair: PresenceKeyPair
    private let keys: ConstraintKeys
    private let itemKey = SymmetricKey(data: Data(repeating: 3, count: 32))
    private let isFaultPlanted = Program.option("planted-fault") != nil

    init() throws {
        pair = try Self.keyPair()
        cipher = try RowTarget.cipher(presencePublicKey: pair.publicKey)
        let release = PresenceRelease(
            storeID: FixedKeys.storeID, publicKey: pair.publicKey, privateKey: try FixedKeys.secret(6), classKeys: NoKeys(), classes: [])
        keys = ConstraintKeys(
            presence: release, applicationPassword: try Self.password(), biometry: try Self.biometry().release())
    }

    private static func keyPair() throws -> PresenceKeyPair { try PresenceKeyPair(privateKey: FixedKeys.secret(6)) }

    private static func password() throws -> ApplicationPassword {
        ApplicationPassword(try FixedKeys.secret(UInt8(ascii: "7"), byteCount: 4))
    }

    /// Keys that are the same in each process.
    private static func biometry() throws -> BiometricKeys {
        try BiometricKeys(
            storeID: FixedKeys.storeID, generation: 1,
            set: FingerprintSet(printsDigest: nil, namesDigest: Array(repeating: 1, count: FingerprintSet.digestByteCount)),
            anyKey: SharedSecretBytes(FixedKeys.secret(8)), currentSetKey: SharedSecretBytes(FixedKeys.secret(9)))
    }

    static func seeds() throws -> [[UInt8]] {
        let sealing = ConstraintSealing(
            storeID: FixedKeys.storeID, presencePublicKey: try keyPair().publicKey, applicationPassword: try password(),
            applicationPasswordCost: try FixedKeys.cost(), enrollment: nil)
        let biometricSealing = ConstraintSealing(
            storeID: FixedKeys.storeID, presencePublicKey: try keyPair().publicKey, applicationPassword: try password(),
            applicationPasswordCost: try FixedKeys.cost(), enrollment: try biometry().enrollment)
        let constraints: [AccessControl.Constraint] = [
            .userPresence, .devicePasscode, .applicationPassword, .any([.biometryAny, .devicePasscode]),
            .all([.devicePasscode, .applicationPassword]),
            .all([.any([.companion, .biometryCurrentSet, .devicePasscode]), .applicationPassword]),
        ]
        let biometric: [AccessControl.Constraint] = [
            .userPresence, .biometryAny, .biometryCurrentSet, .any([.biometryCurrentSet, .devicePasscode]),
            .all([.biometryAny, .applicationPassword]),
        ]
        return try constraints.map { try sealing.seal($0).record.encoded } + biometric.map { try biometricSealing.seal($0).record.encoded }
    }

    func run(_ input: [UInt8]) throws {
        guard let record = ConstraintRecord(encoded: input) else { return }
        expect(record.encoded == input, "a record is accepted in a form that is never written")
        if isFaultPlanted, case .any(let branches) = record { expect(branches.isEmpty, "the planted fault") }
        expect(record.passwordCosts.count <= 1, "a record asks for more than one derivation")
        let cost = record.passwordCosts.first.flatMap { PasscodeCost(encoded: $0) }
        if let cost { FixedKeys.expectBounded(cost) }
        guard cost.map(FixedKeys.isCheap) != false else { return }
        try checkOpening(of: record)
    }

    /// A row opens with the key that its record gives, and with no other.
    private func checkOpening(of record: ConstraintRecord) throws {
        let opening = ConstraintOpening(storeID: FixedKeys.storeID, keys: keys)
        let rootKey = attempt(expecting: Self.isRefusal) { () throws(KeychainFailure) in try opening.key(of: record) }
        let attributes = ItemAttributes([.account: .string("Skroob")])
        let classKey = try FixedKeys.classKey(ClassKeyID(.whenUnlocked, generation: 1))
        let row = try cipher.seal(
            attributes, secret: nil, header: RowTarget.header(constraints: record.encoded),
            rootKey: try rootKey ?? SharedSecretBytes(FixedKeys.secret(7)), under: classKey, itemKey: itemKey)
        let opened = attempt(expecting: Self.isRefusal) { () throws(KeychainFailure) in
            try cipher.open(row, includingSecret: true, with: keys, under: classKey)
        }
        expect((opened != nil) == (rootKey != nil), "a row does not follow its record")
        try checkNeeds(of: record, isOpen: rootKey != nil)
        if let opened { expect(opened.attributes == attributes, "a row opens to something else") }
    }

    /// Each need that the tree reports is required.
    private func checkNeeds(of record: ConstraintRecord, isOpen: Bool) throws {
        let constraint = record.constraint
        expect(constraint.isSatisfiable(withBiometry: true) || !isOpen, "a record opens that nothing releases")
        guard isOpen else { return }
        func opens(_ keys: ConstraintKeys) -> Bool {
            let opening = ConstraintOpening(storeID: FixedKeys.storeID, keys: keys)
            return attempt(expecting: Self.isRefusal) { () throws(KeychainFailure) in try opening.key(of: record) } != nil
        }
        let withoutPresence = opens(ConstraintKeys(applicationPassword: keys.applicationPassword))
        let withoutPassword = opens(ConstraintKeys(presence: keys.presence, biometry: keys.biometry))
        expect(!(withoutPresence && constraint.needsPresence), "a record opens without the passcode that it needs")
        let withoutBiometry = opens(ConstraintKeys(presence: keys.presence, applicationPassword: keys.applicationPassword))
        expect(!(withoutBiometry && !constraint.isSatisfiable), "a record opens without the finger that it needs")
        expect(!(withoutPassword && constraint.needsApplicationPassword), "a record opens without the password that it needs")
    }

    private static func isRefusal(_ failure: KeychainFailure) -> Bool {
        failure.needs != nil || failure.status == .decode || failure.status == .authFailed
            // A key of another set of fingers.
            || failure.status == .itemNotFound
    }
}

/// The class keys that an answer released: none, since no input gets that far.
private struct NoKeys: KeyProvider {
    var keybagGeneration: UInt64 { 1 }

    func currentGeneration(for accessibility: ItemAccessibility) throws(KeychainFailure) -> UInt32 { throw Self.failure() }

    func availability(of accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading) -> KeyAvailability {
        .missing
    }

    func withClassKey<Result>(
        for accessibility: ItemAccessibility, generation: UInt32, lockEpoch: any LockEpochReading,
        _ body: (borrowing ClassKey) throws(KeychainFailure) -> Result
    ) throws(KeychainFailure) -> Result {
        throw Self.failure()
    }

    func scopedToCall(for purpose: KeyHolderPurpose) -> any KeyProvider { self }

    private static func failure() -> KeychainFailure { KeychainFailure(.authFailed, "there are no keys here") }
}
