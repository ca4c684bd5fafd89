// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// The reason why synchronization could not do something.
public struct SyncFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of reasons, by what a person or a program can do about them.
    public enum Code: Hashable, Sendable {
        /// This keychain is in no circle.
        ///
        /// Start one, or join one.
        case notStarted
        /// This keychain is in a circle already.
        case alreadyStarted
        /// The storage has a circle already, which this device can join.
        case circleExists
        /// The storage has no circle, or none of this recovery kit.
        case noCircle
        /// A name cannot be used, or a code or a recovery kit is mistyped.
        case invalidInput
        /// Only an owner of the circle can do this.
        case notOwner
        /// The circle has no such device, or no such conflict any more.
        case notFound
        /// Another agent synchronizes this keychain.
        case agentRunning
        /// This device was removed from its circle.
        ///
        /// Its items stay.
        case removed
        /// The owner that admitted this device was removed, and no other device has confirmed the admission.
        ///
        /// Its items stay, and its changes wait. The agent runs on: a device that knew of the admission before the removal confirms it when it synchronizes.
        case unconfirmed
        /// The credential of a reader has expired.
        ///
        /// The items that were received stay.
        case expired
        /// A credential cannot be read or written, is damaged, or is none.
        case invalidCredential
        /// The storage lacks changes that were there when a credential was made, or that another device has read.
        ///
        /// They have not arrived yet, are withheld, or the storage was taken back to an earlier state.
        case changesMissing
        /// The invitation is over: its ten minutes have passed, or one of the two people has ended it.
        case invitationEnded
        /// The code of an invitation was used before.
        ///
        /// Each code is for one request.
        case codeUsed
        /// A message was made by neither of the two devices, so another person has the code.
        ///
        /// No device was admitted.
        case untrusted
        /// Another device has a newer version of the program, which this one cannot read.
        case newerVersion
        /// Other devices have deleted so many items that a person has to confirm it.
        ///
        /// Nothing of it was deleted here. See ``KeychainSync/acceptDeletions(on:)``.
        case deletionsWait
        /// The storage is gone, full, or cannot be used.
        ///
        /// What could not be sent is sent by the next run.
        case storage
        /// The keychain is locked, or was not unlocked since the machine was started.
        case locked
        /// The keychain cannot be used.
        ///
        /// The reason says why.
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

    /// Translates the failure of a command, which the engine refuses if this device is no owner.
    init(command failure: KeychainFailure) {
        if failure.status == .missingEntitlement { self.init(.notOwner, failure.reason) } else { self.init(failure) }
    }

    package init(_ error: SyncStorageError) { self.init(.storage, error.reason) }

    static var notStarted: SyncFailure { SyncFailure(.notStarted, "this keychain is in no circle") }

    /// The reason.
    public var description: String { reason }
}
#endif
