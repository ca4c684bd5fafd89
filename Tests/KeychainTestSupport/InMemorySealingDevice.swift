// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore
internal import Synchronization

/// A sealing device in memory that keeps sealed secrets, counts wrong authorizations, and can be cleared.
package final class InMemorySealingDevice: SealingDevice {
    private struct Sealed {
        let secret: SharedSecretBytes
        let authorization: SharedSecretBytes?
    }

    private struct State {
        var rootKeyName: [UInt8] = []
        var objects: [[UInt8]: Sealed] = [:]
        var failedTryCount: UInt32 = 0
        var unsealCount = 0
        var isReachable = true
    }

    private let state: Mutex<State>
    private let largestFailedTryCount: UInt32

    /// After `largestFailedTryCount` wrong authorizations the device is locked out permanently.
    package init(largestFailedTryCount: UInt32 = 3) {
        self.largestFailedTryCount = largestFailedTryCount
        state = Mutex(State(rootKeyName: Self.randomName()))
    }

    package var location: String { "memory" }

    /// The number of requests to unseal a secret.
    package var unsealCount: Int { state.withLock { $0.unsealCount } }

    /// Clears the device: all sealed secrets are lost.
    package func clear() {
        state.withLock { $0 = State(rootKeyName: Self.randomName()) }
    }

    /// Sets whether the device answers requests.
    package func setReachable(_ isReachable: Bool) {
        state.withLock { $0.isReachable = isReachable }
    }

    package func rootKeyName(creatingIfMissing: Bool) throws(SealingFailure) -> [UInt8] {
        try state.withLock { state throws(SealingFailure) in
            try Self.requireReachable(state)
            return state.rootKeyName
        }
    }

    package func seal(
        _ secret: borrowing SecretBytes, authorization: borrowing SealingAuthorization
    ) throws(SealingFailure) -> SealedObject {
        let sealed = Sealed(secret: try Self.copy(secret), authorization: try Self.copy(authorization))
        return try state.withLock { state throws(SealingFailure) in
            try Self.requireReachable(state)
            let handle = Self.counted(StoreID.random().bytes)
            state.objects[handle] = sealed
            let publicArea = Self.counted([sealed.authorization == nil ? 0 : 1])
            return SealedObject(rootKeyName: state.rootKeyName, publicArea: publicArea, privateArea: handle)
        }
    }

    package func unseal(
        _ object: SealedObject, authorization: borrowing SealingAuthorization
    ) throws(SealingFailure) -> SecretBytes {
        let given = try Self.copy(authorization)
        return try state.withLock { state throws(SealingFailure) in
            try Self.requireReachable(state)
            state.unsealCount += 1
            guard object.rootKeyName == state.rootKeyName, let sealed = state.objects[object.privateArea] else { throw .foreignObject }
            if let expected = sealed.authorization {
                guard state.failedTryCount < largestFailedTryCount else { throw .lockedOut(seconds: 600) }
                guard let given, Self.areEqual(given, expected) else {
                    state.failedTryCount += 1
                    throw .wrongAuthorization
                }
            }
            do throws(KeychainFailure) { return try sealed.secret.copy() } catch { throw .failed("no memory") }
        }
    }

    package func status() throws(SealingFailure) -> SealingDeviceStatus {
        try state.withLock { state throws(SealingFailure) in
            try Self.requireReachable(state)
            return SealingDeviceStatus(
                name: "memory", failedTryCount: state.failedTryCount, largestFailedTryCount: largestFailedTryCount, recoverySeconds: 600,
                isLockedOut: state.failedTryCount >= largestFailedTryCount, isLockoutAuthorizationSet: false)
        }
    }

    private static func requireReachable(_ state: borrowing State) throws(SealingFailure) {
        guard state.isReachable else { throw .unavailable("it was taken away") }
    }

    /// Prefixes `bytes` with their count as a TPM does: two bytes, big-endian.
    private static func counted(_ bytes: [UInt8]) -> [UInt8] { [0, UInt8(truncatingIfNeeded: bytes.count)] + bytes }

    private static func randomName() -> [UInt8] { [0, 11] + StoreID.random().bytes + StoreID.random().bytes }

    private static func copy(_ secret: borrowing SecretBytes) throws(SealingFailure) -> SharedSecretBytes {
        do throws(KeychainFailure) {
            // The bytes are copied within the closure.
            return SharedSecretBytes(
                try unsafe secret.withBytes { (bytes) throws(KeychainFailure) in try unsafe SecretBytes(copying: bytes) })
        } catch {
            throw .failed("no memory")
        }
    }

    private static func copy(_ authorization: borrowing SealingAuthorization) throws(SealingFailure) -> SharedSecretBytes? {
        switch authorization {
        case .none: return nil
        case .bytes(let bytes): return try copy(bytes)
        }
    }

    private static func areEqual(_ one: SharedSecretBytes, _ other: SharedSecretBytes) -> Bool {
        // The bytes are compared within the closures.
        unsafe one.secret.withBytes { one in unsafe other.secret.withBytes { unsafe one.elementsEqual($0) } }
    }
}
#endif
