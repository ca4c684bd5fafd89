// SPDX-License-Identifier: Apache-2.0
internal import Foundation

extension AsynchronousValet {
    /// Returns the value under a key, renewed if it has expired: one task of all processes renews it, and the others receive its result.
    ///
    ///     let token = try await valet.asynchronously.refresh(.token, if: \.isExpired) { try await renew($0) }
    ///
    /// If the task that renews throws or is canceled, or if its process ends, another one of those that wait renews the value instead. A value that
    /// another call stores meanwhile is replaced by the renewed one only if it has expired as well, and a removed one does not return. A task that has
    /// waited for the renewal of another one receives its result even if that has expired already.
    ///
    /// `renew` must not refresh the same key, because it would wait for itself.
    ///
    /// - Parameters:
    ///   - key: The key.
    ///   - isExpired: Whether a value has to be renewed.
    ///   - timeoutSeconds: The time in seconds that a renewal may take, from 1 to 86,400. After it, another task may begin a renewal as well; the value
    ///     that is stored first remains.
    ///   - userPrompt: The reason that a prompt shows, if the valet requires one. ``SecureEnclaveValet`` prompts for each of up to three reads.
    ///   - renew: A closure that receives the expired value and returns a new one. It runs in the context of the caller.
    /// - Returns: The value, or the renewed one.
    /// - Throws: The errors of `renew`, ``ValetFailure`` with the reasons of ``SecretStore/value(for:withPrompt:)`` and
    ///   ``SecretStore/set(_:for:onlyIfAbsent:)``, or `CancellationError`. If there is no value, or the keychain cannot be written, `renew`
    ///   is not called. If the renewed value cannot be stored, for example because the keychain was locked meanwhile, it is lost.
    nonisolated(nonsending) public func refresh<Value>(
        _ key: ValetKey<Value>, if isExpired: (Value) -> Bool, timeoutSeconds: Double = 60, withPrompt userPrompt: String = "",
        renew: nonisolated(nonsending) (Value) async throws -> Value
    ) async throws -> Value {
        var abandoned: UUID?
        /// The stored form that another task was renewing while this one waited.
        var awaited: Data?
        while true {
            let stored = try await run { try $0.data(for: key, withPrompt: userPrompt) }
            let value = try key.decode(stored, with: store.coder)
            // Where a server and this machine have different times, each task would otherwise renew the value once more.
            let wasRenewed = awaited.map { $0 != stored } ?? false
            guard isExpired(value), !wasRenewed else { return value }
            let lease = RenewalLease(timeoutSeconds: timeoutSeconds)
            let known = abandoned
            // Not canceled with the caller, which would not learn that it has the lease.
            let other = try await Task { try await run { try lease.take(forKey: key.name, in: $0.renewalStore, from: known) } }.value
            if let other {
                let isAbandoned = try await other.isAbandonedAtEndOfWait(forKey: key.name, self)
                abandoned = isAbandoned ? other.identifier : nil
                awaited = isAbandoned ? nil : stored
                continue
            }
            do {
                try Task.checkCancellation()
                let renewed = try await renewOnce(key, if: isExpired, withPrompt: userPrompt, renew)
                await giveUp(lease, forKey: key.name)
                if let renewed { return renewed }
            } catch {
                await giveUp(lease, forKey: key.name)
                throw error
            }
        }
    }

    /// Renews the value, if it is still expired, and stores the result.
    ///
    /// - Returns: The value; nil if another call has stored a value during the renewal.
    nonisolated(nonsending) private func renewOnce<Value>(
        _ key: ValetKey<Value>, if isExpired: (Value) -> Bool, withPrompt userPrompt: String,
        _ renew: nonisolated(nonsending) (Value) async throws -> Value
    ) async throws -> Value? {
        let old = try await run { try $0.data(for: key, withPrompt: userPrompt) }
        let value = try key.decode(old, with: store.coder)
        guard isExpired(value) else { return value }
        let renewed = try await renew(value)
        let new = try key.encode(renewed, with: store.coder)
        var expected = old
        while true {
            let replaced = expected
            // Not canceled with the caller: the server may accept only the renewed value from now on.
            let outcome = try await Task { try await run { try $0.replace(replaced, with: new, for: key, withPrompt: userPrompt) } }.value
            switch outcome {
            case .replaced: return renewed
            case .removed: return nil
            case .changed(let other):
                // For example another field of the expired value. The renewed one must not be lost for that.
                guard let otherValue = try? key.decode(other, with: store.coder), isExpired(otherValue) else { return nil }
                expected = other
            }
        }
    }

    /// Ends a renewal, also that of a canceled task.
    nonisolated(nonsending) private func giveUp(_ lease: RenewalLease, forKey key: String) async {
        // Without success the lease is abandoned when its time has passed. The result of the renewal is more important than this error.
        try? await Task { try await run { try lease.giveUp(forKey: key, in: $0.renewalStore) } }.value
    }
}

private enum Replacement: Sendable {
    case replaced
    /// Another call has stored this form.
    case changed(Data)
    case removed
}

extension SecretStore {
    /// Replaces the stored form of a value, unless it is another one meanwhile, which remains.
    fileprivate func replace<Value>(
        _ old: Data, with new: Data, for key: ValetKey<Value>, withPrompt userPrompt: String
    ) throws(ValetFailure) -> Replacement {
        var outcome = Replacement.removed
        try ValetFailure.translating { () throws(KeychainError) in
            try modifyObject(forKey: key.name, withPrompt: userPrompt) { stored in
                outcome = stored == old ? .replaced : stored.map(Replacement.changed) ?? .removed
                if stored == old { stored = new }
            }
        }
        return outcome
    }
}

/// The note that a task renews the value under a key.
///
/// It is a value in the renewal store, so the keychain decides among the tasks of all processes. A process that was killed does not remove it:
/// it is abandoned when its time has passed by a clock that is never set and that stands still while the machine sleeps, or while another task
/// has waited for it, because a restart of the machine sets that clock back.
private struct RenewalLease: Codable, Sendable {
    let identifier: UUID
    private let expiration: SuspendingClock.Instant
    private let timeoutSeconds: Double

    init(timeoutSeconds: Double) {
        identifier = UUID()
        self.timeoutSeconds = Self.limited(timeoutSeconds)
        expiration = .now.advanced(by: .seconds(self.timeoutSeconds))
    }

    /// Returns the nearest time from 1 s to a day, in seconds.
    private static func limited(_ seconds: Double) -> Double { seconds > 1 ? min(seconds, 86_400) : 1 }

    /// Takes the lease, unless another task has it and it is neither `abandoned` nor expired.
    ///
    /// - Returns: The lease of the other task; nil if this one was taken.
    func take(forKey key: String, in store: any SecretStore, from abandoned: UUID?) throws -> RenewalLease? {
        let own = try JSONValetCoder().encode(self)
        var other: RenewalLease?
        try ValetFailure.translating { () throws(KeychainError) in
            try store.modifyObject(forKey: Self.name(of: key), withPrompt: "") { stored in
                // Bytes that are not a lease do not name a task to wait for.
                other = stored.flatMap(Self.init)
                if let lease = other, lease.identifier == abandoned || lease.expiration <= .now { other = nil }
                if other == nil { stored = own }
            }
        }
        return other
    }

    /// Removes the lease, unless another task has taken it meanwhile.
    func giveUp(forKey key: String, in store: any SecretStore) throws {
        try ValetFailure.translating { () throws(KeychainError) in
            try store.modifyObject(forKey: Self.name(of: key), withPrompt: "") { stored in
                if stored.flatMap(Self.init)?.identifier == identifier { stored = nil }
            }
        }
    }

    /// Waits until the lease is given up, taken by another task, or abandoned.
    ///
    /// - Returns: Whether it is abandoned.
    nonisolated(nonsending) func isAbandonedAtEndOfWait<Store>(forKey key: String, _ valet: AsynchronousValet<Store>) async throws -> Bool {
        let end = SuspendingClock.now.advanced(by: .seconds(Self.limited(timeoutSeconds)))
        while .now < min(end, expiration) {
            try await Task.sleep(for: .milliseconds(50))
            let current = try await valet.run { store in
                try ValetFailure.translating { () throws(KeychainError) -> RenewalLease? in
                    do throws(KeychainError) {
                        return Self(try store.renewalStore.object(forKey: Self.name(of: key), withPrompt: ""))
                    } catch {
                        guard error == .itemNotFound else { throw error }
                        return nil
                    }
                }
            }
            guard current?.identifier == identifier else { return false }
        }
        return true
    }

    private init?(_ stored: Data) {
        guard let lease = try? JSONValetCoder().decode(RenewalLease.self, from: stored) else { return nil }
        self = lease
    }

    private static func name(of key: String) -> String { "renewal of " + key }
}
