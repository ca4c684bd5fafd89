// SPDX-License-Identifier: Apache-2.0
internal import FoundationEssentials
internal import Keybag
package import KeychainCore
internal import Synchronization

/// Biometry, where something outside of this process verifies fingers.
///
/// The biometric keys are the value of an item that no program sees. Its class is that of items which are accessible after the first unlock on
/// this device, so the class keys protect it as they protect every other item: a passcode must have been entered since the start, and
/// locking everything takes the keys away. In addition, its value is wrapped under the verifier's secret.
extension LocalKeychain {
    /// What a program can learn about biometry.
    package func biometryStatus() throws(KeychainFailure) -> BiometryStatus {
        guard let biometry else {
            if let failure = signpostFailure() { throw failure }
            return BiometryStatus()
        }
        var status = BiometryStatus(biometry.availability())
        guard let digest = status.domainState else { return status }
        do throws(KeychainFailure) {
            status.domainState = try BiometricKeys.state(of: digest, under: biometry.secret().secret, storeID: storeID())
        } catch {
            // Before the first item there is a reader, and no keychain whose state it is.
            guard error.status == .itemNotFound else { throw error }
            status.domainState = nil
        }
        return status
    }

    /// The failure of each call if keychaind keeps the keychain, which has biometry where this engine has none; nil otherwise.
    func signpostFailure() -> KeychainFailure? {
        do throws(KeychainFailure) {
            _ = try storeID()
        } catch {
            if case .keptByDaemon = error.cause { return error }
        }
        return nil
    }

    // MARK: The keys

    /// Returns the biometric keys for a set of fingers, and destroys the key of the former set if it is another one.
    func biometricKeys(for set: FingerprintSet, _ verifier: any BiometryVerifier) throws(KeychainFailure) -> BiometricKeys {
        let secret = try verifier.secret()
        return try performOnCurrentKeybag { opened throws(KeychainFailure) in
            guard opened.keybag.isPasscodeSet else { throw KeychainFailure.passcodeNotSet() }
            let record = try BiometricKeysRecord(in: opened.keychain, opened.keybag.storeID, secret)
            // Two threads that see another set at the same time must not make two keys for it.
            let outcome = BiometricKeysRecord.turn(of: opened.keybag.storeID).withLock { _ in
                Result { () throws(KeychainFailure) in
                    let keys = try record.keys(for: set)
                    BiometricKeysRecord.latest.withLock { $0[opened.keybag.storeID] = keys.enrollment.setID }
                    return keys
                }
            }
            return try outcome.get()
        }
    }

    /// Looks for the enrolled fingers, and notes what is known of them in the context.
    ///
    /// Throws if biometry cannot be used now.
    @discardableResult
    func noteEnrollment(in context: AuthenticationContext) throws(KeychainFailure) -> (BiometricKeys, any BiometryVerifier) {
        guard let biometry else { throw KeychainFailure.biometryNotAvailable() }
        let availability = biometry.availability()
        guard case .available(let set) = availability else { throw availability.failure ?? .biometryNotAvailable() }
        let keys = try biometricKeys(for: set, biometry)
        context.note(keys.enrollment, of: try storeID())
        return (keys, biometry)
    }

    /// Prepares a call that stores an item with this access control.
    ///
    /// Throws if the item could never be read without biometry, and that cannot be used now.
    func prepareSealing(_ constraint: AccessControl.Constraint?, _ authentication: inout Authentication) throws(KeychainFailure) {
        guard biometry != nil, let constraint, !constraint.biometryKinds.isEmpty else { return }
        let context = authentication.context ?? AuthenticationContext(callScoped: true)
        guard !context.isInvalidated else { throw Self.invalidatedContext }
        authentication.context = context
        do throws(KeychainFailure) {
            try noteEnrollment(in: context)
        } catch {
            // The passcode remains for items that it opens too.
            guard constraint.isSatisfiable else { throw error }
            noteLastEnrollment(in: context)
        }
    }

    /// Notes the fingers that were enrolled at the last look, so that a finger opens an item also if the reader was in use, or the person was
    /// elsewhere, when the item was stored.
    ///
    /// Best effort: if there are no keys, or they cannot be read now, only the passcode opens the item.
    private func noteLastEnrollment(in context: AuthenticationContext) {
        guard let secret = try? biometry?.presentSecret() else { return }
        let enrollment = try? performOnCurrentKeybag { opened throws(KeychainFailure) in
            (opened.keybag.storeID, try BiometricKeysRecord(in: opened.keychain, opened.keybag.storeID, secret).stored().enrollment)
        }
        if let (storeID, enrollment) = enrollment { context.note(enrollment, of: storeID) }
    }

    /// Whether a later set of fingers than this one is known.
    static func isReplaced(_ set: BiometricSetID, of storeID: StoreID) -> Bool {
        BiometricKeysRecord.latest.withLock { latest in latest[storeID].map(set.isOlder) ?? false }
    }

    // MARK: The scan

    /// The outcome of a prompt beside which a finger may be scanned.
    enum Released: Sendable {
        case presence(PresenceRelease)
        case biometry(BiometricRelease)
    }

    /// Scans a finger until it matches; the prompt says so, and cancels.
    func askForFinger(
        _ question: PresenceQuestion, _ keys: BiometricKeys, _ verifier: any BiometryVerifier
    ) throws(KeychainFailure) -> BiometricRelease {
        let scan = try RunningScan(verifier, timeoutSeconds: question.timeoutSeconds, endsPromptIfRefused: true)
        defer { scan.cancel() }
        var refusal: PresenceRefusal?
        do throws(PresenceRefusal) {
            _ = try promptSettings.prompter.ask(question, endedBy: scan.promptEnd)
        } catch {
            refusal = error
        }
        switch scan.outcome {
        case .matched(let set): return try release(keys, after: set, verifier)
        case .refused(let failure): throw failure
        case nil: throw KeychainFailure(refusal ?? .canceled)
        }
    }

    /// Returns the keys after a match, if the set of fingers is still the same.
    func release(
        _ keys: BiometricKeys, after set: FingerprintSet, _ verifier: any BiometryVerifier
    ) throws(KeychainFailure) -> BiometricRelease {
        guard set.compared(with: keys.set) == .same else {
            _ = try biometricKeys(for: set, verifier)
            throw KeychainFailure(.authFailed, "the set of enrolled fingers has changed meanwhile", refusal: .notSatisfied)
        }
        return keys.release()
    }
}

/// A scan beside a prompt.
final class RunningScan: Sendable {
    let promptEnd = PromptEnd()
    private let state = Mutex<BiometricScanOutcome?>(nil)
    private let scan: Mutex<(any BiometricScan)?> = Mutex(nil)

    init(_ verifier: any BiometryVerifier, timeoutSeconds: UInt32, endsPromptIfRefused: Bool) throws(KeychainFailure) {
        let begun = try verifier.beginScan(timeoutSeconds: timeoutSeconds) { [weak self] outcome in
            guard let self else { return }
            state.withLock { $0 = outcome }
            if case .refused = outcome, !endsPromptIfRefused { return }
            promptEnd.end()
        }
        scan.withLock { $0 = begun }
    }

    /// Nil while the scan lasts.
    var outcome: BiometricScanOutcome? { state.withLock { $0 } }

    func cancel() { scan.withLock { $0 }?.cancel() }
}

/// The item with the biometric keys.
private struct BiometricKeysRecord {
    /// The sets that the keys of stores belong to.
    static let latest = Mutex<[StoreID: BiometricSetID]>([:])

    /// Held while the keys of a store are read and changed, which waits for the disk: not the lock of `latest`, which every use of a key takes.
    final class Turn: Sendable {
        private let lock = Mutex(())

        func withLock<Result: Sendable>(_ body: (inout sending ()) -> sending Result) -> Result { lock.withLock(body) }
    }

    private static let turns = Mutex<[StoreID: Turn]>([:])

    static func turn(of storeID: StoreID) -> Turn {
        turns.withLock { turns in
            if let known = turns[storeID] { return known }
            let made = Turn()
            turns[storeID] = made
            return made
        }
    }

    private let keychain: SealedKeychain
    private let storeID: StoreID
    private let secret: SharedSecretBytes
    private let query: ItemQuery

    init(in keychain: SealedKeychain, _ storeID: StoreID, _ secret: SharedSecretBytes) throws(KeychainFailure) {
        self.keychain = keychain.with(entitlements: .biometry)
        self.storeID = storeID
        self.secret = secret
        query = ItemQuery(
            itemClass: .genericPassword,
            attributes: ItemAttributes([
                .service: .string("biometric keys"), .account: .string(try BiometricKeys.name(for: secret.secret, storeID: storeID)),
                .accessGroup: .string(Entitlements.biometryGroup),
            ]))
    }

    func keys(for set: FingerprintSet) throws(KeychainFailure) -> BiometricKeys {
        do throws(KeychainFailure) {
            let present = try stored()
            let fresh: BiometricKeys
            switch set.compared(with: present.set) {
            case .same where set.evidence == present.set.evidence: return present
            case .same: fresh = try present.noting(set: set)
            case .other: fresh = try present.replacing(set: set)
            // Nothing is destroyed because something could not be looked at.
            case .unknown:
                throw BiometryAvailability.notAvailable("keychain-fprint-digest, which has read the prints before, is not there").failure
                    ?? .biometryNotAvailable()
            }
            try keychain.update(UpdateRequest(query: query, secret: Data(try fresh.encoded(under: secret.secret))))
            return fresh
        } catch {
            guard error.status == .itemNotFound else { throw error }
        }
        let fresh = try BiometricKeys(for: set, storeID: storeID)
        do throws(KeychainFailure) {
            _ = try keychain.add(
                AddRequest(
                    itemClass: .genericPassword, attributes: query.attributes, secret: Data(try fresh.encoded(under: secret.secret)),
                    accessControl: AccessControl(.afterFirstUnlockThisDeviceOnly)))
            return fresh
        } catch {
            guard error.status == .duplicateItem else { throw error }
            return try stored()
        }
    }

    func stored() throws(KeychainFailure) -> BiometricKeys {
        let items = try keychain.copyMatching(MatchRequest(query: query, limit: 1, includesSecrets: true))
        guard let value = items.first?.secret else { throw KeychainFailure(.decode, "the biometric keys have no value", cause: .damaged) }
        return try BiometricKeys(encoded: Array(value), under: secret.secret, storeID: storeID)
    }
}
