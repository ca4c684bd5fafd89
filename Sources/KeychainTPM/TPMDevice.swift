// SPDX-License-Identifier: Apache-2.0
internal import CTPMShims
package import KeychainCore
internal import Synchronization

/// A TPM 2.0, used through tpm2-tss.
///
/// Each call opens its own connection and leaves nothing loaded in the TPM. Calls to one TPM are serialized within a process.
package struct TPMDevice: SealingDevice {
    /// The kernel's resource manager, which shares the TPM among processes.
    package static let defaultTCTI = "device:/dev/tpmrm0"

    /// Whether this build supports TPMs, that is, has the package trait `TPM`.
    package static var isBuilt: Bool { keychain_tpm_is_built() }

    package let location: String
    private let timeoutSeconds: UInt32
    private let lock: TimedLock

    /// A TPM named by a TCTI of tpm2-tss, "module:configuration".
    ///
    /// No other TPM is tried.
    ///
    /// A call waits at most `timeoutSeconds` for other calls of this process, and then at most as long for the TPM.
    package init(tcti: String = defaultTCTI, timeoutSeconds: UInt32 = 30) throws(SealingFailure) {
        guard let first = tcti.utf8.first, first != UInt8(ascii: ":"), !tcti.utf8.contains(0) else {
            throw .unavailable("\"\(tcti)\" is not the TCTI of a TPM; an example: \(Self.defaultTCTI)")
        }
        location = tcti
        // At most a day, so that the number of milliseconds fits into 32 bits.
        self.timeoutSeconds = min(timeoutSeconds, 86_400)
        lock = TPMLocks.lock(of: tcti)
    }

    package func rootKeyName(creatingIfMissing: Bool) throws(SealingFailure) -> [UInt8] {
        var object = keychain_tpm_object()
        try unsafe call { call, report in
            // Here and below: all pointers stay valid during the call and are not used after it returns.
            unsafe keychain_tpm_root_key_name(call, creatingIfMissing, &object, report)
        }
        return SealedObject(object).rootKeyName
    }

    package func seal(
        _ secret: borrowing SecretBytes, authorization: borrowing SealingAuthorization
    ) throws(SealingFailure) -> SealedObject {
        guard secret.byteCount <= Int(KEYCHAIN_TPM_LARGEST_SECRET) else {
            throw .failed("a TPM seals at most \(KEYCHAIN_TPM_LARGEST_SECRET) bytes")
        }
        guard !authorization.isAllZeros else { throw .failed("for a TPM an authorization of zeros is empty") }
        var object = keychain_tpm_object()
        try unsafe secret.withBytes { secret throws(SealingFailure) in
            try unsafe authorization.withPointer { authorization throws(SealingFailure) in
                try unsafe call { call, report in
                    unsafe keychain_tpm_seal(call, secret.baseAddress, secret.count, authorization, &object, report)
                }
            }
        }
        return SealedObject(object)
    }

    package func unseal(
        _ object: SealedObject, authorization: borrowing SealingAuthorization
    ) throws(SealingFailure) -> SecretBytes {
        guard var object = keychain_tpm_object(object) else { throw .failed("the object is larger than any that a TPM seals") }
        var byteCount = 0
        var failure: SealingFailure?
        do throws(KeychainFailure) {
            // The size is known only after the call.
            let room = try unsafe SecretBytes(byteCount: Int(KEYCHAIN_TPM_LARGEST_SECRET)) { room throws(KeychainFailure) in
                do throws(SealingFailure) {
                    try unsafe authorization.withPointer { authorization throws(SealingFailure) in
                        try unsafe call { call, report in
                            unsafe keychain_tpm_unseal(call, &object, authorization, room.baseAddress, &byteCount, report)
                        }
                    }
                } catch {
                    failure = error
                    throw KeychainFailure(.notAvailable, "the TPM did not unseal")
                }
            }
            return try unsafe room.withBytes { room throws(KeychainFailure) in
                try unsafe SecretBytes(copying: UnsafeRawBufferPointer(rebasing: room.prefix(byteCount)))
            }
        } catch {
            throw failure ?? .failed("no memory for the unsealed secret")
        }
    }

    package func status() throws(SealingFailure) -> SealingDeviceStatus {
        var state = keychain_tpm_state()
        try unsafe call { call, report in
            unsafe keychain_tpm_read_state(call, &state, report)
        }
        return SealingDeviceStatus(state)
    }

    /// The digest of the policy of objects with an authorization, computed by the TPM.
    package func computedPolicyDigest() throws(SealingFailure) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT))
        try unsafe call { call, report in
            unsafe keychain_tpm_compute_policy_digest(call, &digest, report)
        }
        return digest
    }

    /// Makes one call while no other call of this process uses the TPM.
    private func call(
        _ body: (UnsafePointer<keychain_tpm_call>, UnsafeMutablePointer<keychain_tpm_report>) -> Void
    ) throws(SealingFailure) {
        guard lock.acquire(withinSeconds: timeoutSeconds) else { throw .timedOut }
        var report = keychain_tpm_report()
        unsafe location.withCString { tcti in
            // The thread that last uses the TPM releases the lock and this reference to it.
            var call = unsafe keychain_tpm_call(
                tcti: tcti, timeout_milliseconds: timeoutSeconds * 1000,
                ended: { lock in
                    guard let lock = unsafe lock else { return }
                    unsafe Unmanaged<TimedLock>.fromOpaque(lock).takeRetainedValue().release()
                },
                context: Unmanaged.passRetained(lock).toOpaque()
            )
            unsafe body(&call, &report)
        }
        if let failure = SealingFailure(report) { throw failure }
    }
}

/// One lock for each TCTI that this process has used.
enum TPMLocks {
    private static let locks = Mutex<[String: TimedLock]>([:])

    static func lock(of tcti: String) -> TimedLock {
        locks.withLock { locks in
            let lock = locks[tcti] ?? TimedLock()
            locks[tcti] = lock
            return lock
        }
    }
}
