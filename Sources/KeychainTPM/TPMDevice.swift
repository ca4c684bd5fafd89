// SPDX-License-Identifier: Apache-2.0
internal import CTPMShims
package import KeychainCore
internal import Synchronization

/// A TPM 2.0, reached over tpm2-tss.
///
/// Each call connects anew and leaves nothing loaded in the chip. Calls to one chip go one after the other.
package struct TPMDevice: SealingDevice {
    /// Where the kernel shares the chip among programs.
    package static let defaultTCTI = "device:/dev/tpmrm0"

    /// Whether this build can talk to a TPM: whether it was built with the package trait `TPM`.
    package static var isBuilt: Bool { keychain_tpm_is_built() }

    package let location: String
    private let timeoutSeconds: UInt32
    private let lock: TimedLock

    /// A chip at a place that is named as tpm2-tss names it, "module:configuration"; no other is looked for.
    ///
    /// A call waits at most `timeoutSeconds` for other calls of this process to end, and then as long for the chip.
    package init(tcti: String = defaultTCTI, timeoutSeconds: UInt32 = 30) throws(SealingFailure) {
        guard let first = tcti.utf8.first, first != UInt8(ascii: ":"), !tcti.utf8.contains(0) else {
            throw .unavailable("\"\(tcti)\" does not say where the TPM is; an example: \(Self.defaultTCTI)")
        }
        location = tcti
        // A day is longer than anybody waits, and fits when it is counted in milliseconds.
        self.timeoutSeconds = min(timeoutSeconds, 86_400)
        lock = TPMLocks.lock(of: tcti)
    }

    package func rootKeyName(makingOne: Bool) throws(SealingFailure) -> [UInt8] {
        var object = keychain_tpm_object()
        try unsafe call { call, report in
            // Here and below: the call, what it fills in and the report are ours, and are not used after it returns.
            unsafe keychain_tpm_root_key_name(call, makingOne, &object, report)
        }
        return SealedObject(object).rootKeyName
    }

    package func seal(
        _ secret: borrowing SecretBytes, authorization: borrowing SealingAuthorization
    ) throws(SealingFailure) -> SealedObject {
        guard secret.byteCount <= Int(KEYCHAIN_TPM_LARGEST_SECRET) else {
            throw .failed("a TPM seals at most \(KEYCHAIN_TPM_LARGEST_SECRET) bytes")
        }
        guard !authorization.isAllZeros else { throw .failed("to a TPM an authorization of zeros is none") }
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
        guard var object = keychain_tpm_object(object) else { throw .failed("what is to be unsealed is larger than what a TPM seals") }
        var byteCount = 0
        var failure: SealingFailure?
        do throws(KeychainFailure) {
            // Its size is known only afterwards.
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
            throw failure ?? .failed("no memory for what the TPM unsealed")
        }
    }

    package func status() throws(SealingFailure) -> SealingDeviceStatus {
        var state = keychain_tpm_state()
        try unsafe call { call, report in
            unsafe keychain_tpm_read_state(call, &state, report)
        }
        return SealingDeviceStatus(state)
    }

    /// The digest of the policy of objects with an authorization, as the chip computes it.
    package func computedPolicyDigest() throws(SealingFailure) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(KEYCHAIN_TPM_POLICY_DIGEST_BYTE_COUNT))
        try unsafe call { call, report in
            unsafe keychain_tpm_compute_policy_digest(call, &digest, report)
        }
        return digest
    }

    /// Makes one call while no other call of this process uses the chip.
    private func call(
        _ body: (UnsafePointer<keychain_tpm_call>, UnsafeMutablePointer<keychain_tpm_report>) -> Void
    ) throws(SealingFailure) {
        guard lock.acquire(withinSeconds: timeoutSeconds) else { throw .timedOut }
        var report = keychain_tpm_report()
        unsafe location.withCString { tcti in
            // The reference is given back with the lock, by whichever thread is the last to use the chip.
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

/// One lock for each chip that this process has named.
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
