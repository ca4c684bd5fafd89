// SPDX-License-Identifier: Apache-2.0

/// A constraint tree as a row keeps it: each node with what its key is made from.
///
/// A node's key is there only for whoever satisfies the node. Nothing in it is a secret.
package indirect enum ConstraintRecord: Hashable, Sendable {
    /// `userPresence` or `devicePasscode`: the node's key, sealed to the public half of the presence key pair.
    case presence(Presence, sealedKey: [UInt8])
    /// No key of this process's: somebody else would have to release it.
    case unreleased(Unreleased)
    /// The node's key is derived from a password.
    case applicationPassword(PasswordRecord)
    /// The node's own random key, wrapped under the key of each branch that has one.
    case any([Branch])
    /// The node's key is derived from the keys of all branches, in order.
    case all([ConstraintRecord])

    package enum Presence: Hashable, Sendable {
        case userPresence, devicePasscode
    }

    package enum Unreleased: Hashable, Sendable {
        case biometryAny, biometryCurrentSet, companion
    }

    package struct PasswordRecord: Hashable, Sendable {
        package static let saltByteCount = 16
        package static let costByteCount = 9
        package static let checkByteCount = 16

        /// Random for each item, so that one password gives each its own key.
        package let salt: [UInt8]
        /// What deriving from the password costs, as the cipher encodes it.
        package let cost: [UInt8]
        /// Tells a wrong password from a damaged item.
        package let check: [UInt8]

        package init(salt: [UInt8], cost: [UInt8], check: [UInt8]) {
            self.salt = salt
            self.cost = cost
            self.check = check
        }
    }

    package struct Branch: Hashable, Sendable {
        package let record: ConstraintRecord
        /// Nil where the branch has no key.
        package let wrappedKey: [UInt8]?

        package init(_ record: ConstraintRecord, wrappedKey: [UInt8]?) {
            self.record = record
            self.wrappedKey = wrappedKey
        }
    }

    /// The tree without what its keys are made from.
    package var constraint: AccessControl.Constraint {
        switch self {
        case .presence(.userPresence, _): .userPresence
        case .presence(.devicePasscode, _): .devicePasscode
        case .unreleased(.biometryAny): .biometryAny
        case .unreleased(.biometryCurrentSet): .biometryCurrentSet
        case .unreleased(.companion): .companion
        case .applicationPassword: .applicationPassword
        case .any(let branches): .any(branches.map(\.record.constraint))
        case .all(let records): .all(records.map(\.constraint))
        }
    }
}

extension AccessControl.Constraint {
    /// Whether no way leads to the item but through the passcode.
    ///
    /// Biometry and companions release no key here, so a passcode beside them is the only way.
    package var needsPresence: Bool {
        switch self {
        case .userPresence, .devicePasscode: true
        case .biometryAny, .biometryCurrentSet, .companion, .applicationPassword: false
        case .any(let parts): parts.contains { $0.isReleasable } && parts.allSatisfy { !$0.isReleasable || $0.needsPresence }
        case .all(let parts): parts.contains { $0.needsPresence }
        }
    }

    /// Whether an application password is part of every way.
    package var needsApplicationPassword: Bool {
        switch self {
        case .applicationPassword: true
        case .userPresence, .devicePasscode, .biometryAny, .biometryCurrentSet, .companion: false
        case .any(let parts):
            !parts.contains { $0.isReleasable && !$0.needsApplicationPassword } && parts.contains { $0.needsApplicationPassword }
        case .all(let parts): parts.contains { $0.needsApplicationPassword }
        }
    }

    /// Whether there is any way at all, in a process by itself.
    package var isReleasable: Bool {
        switch self {
        case .userPresence, .devicePasscode, .applicationPassword: true
        case .biometryAny, .biometryCurrentSet, .companion: false
        case .any(let parts): parts.contains { $0.isReleasable }
        case .all(let parts): parts.allSatisfy { $0.isReleasable }
        }
    }
}
