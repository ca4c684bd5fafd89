// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// The reason why synchronization could not do something.
public struct SyncFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of reasons, by what a person or a program can do about them.
    public enum Code: Hashable, Sendable {
        /// This keychain is in no circle. Start one, or join one.
        case notStarted
        /// Another agent synchronizes this keychain.
        case agentRunning
        /// This device was removed from its circle. Its items stay.
        case removed
        /// The storage is gone, full, or cannot be used. What could not be sent is sent by the next run.
        case storage
        /// The keychain is locked, or was not unlocked since the machine was started.
        case locked
        /// The keychain cannot be used. The reason says why.
        case keychain
    }

    /// The kind of reason.
    public let code: Code
    /// A sentence for people, without a full stop.
    ///
    /// It never contains a secret.
    public let reason: String

    package init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    package init(_ failure: KeychainFailure) {
        self.init(failure.status == .interactionNotAllowed ? .locked : .keychain, failure.reason)
    }

    static var notStarted: SyncFailure { SyncFailure(.notStarted, "this keychain is in no circle") }

    /// The reason.
    public var description: String { reason }
}
#endif
