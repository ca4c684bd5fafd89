// SPDX-License-Identifier: Apache-2.0

/// A constraint tree as stored in a row: each node with the data that its key is derived from.
///
/// The data is not secret: deriving a node's key from it also requires that the caller satisfies the node.
package indirect enum ConstraintRecord: Hashable, Sendable {
    /// `userPresence` or `devicePasscode`: the node's key, sealed to the public key of the presence key pair.
    case presence(Presence, sealedKey: [UInt8])
    /// `userPresence` where biometry does as well: the node's key, sealed to both public keys.
    case presenceOrBiometry(sealedKey: [UInt8], biometrySealedKey: [UInt8])
    /// `biometryAny`: the node's key, sealed to the public key of all sets of fingers.
    case biometryAny(sealedKey: [UInt8])
    /// `biometryCurrentSet`: the node's key, sealed to the public key of one set of fingers.
    case biometryCurrentSet(BiometricSetID, sealedKey: [UInt8])
    /// A node without a key, because nothing on this platform can release one.
    case keyless(Keyless)
    /// The node's key is derived from a password.
    case applicationPassword(PasswordRecord)
    /// The node's own random key, wrapped under the key of each branch that has one.
    case any([Branch])
    /// The node's key is derived from the keys of all branches, in order.
    case all([ConstraintRecord])

    package enum Presence: Hashable, Sendable {
        case userPresence, devicePasscode
    }

    package enum Keyless: Hashable, Sendable {
        case biometryAny, biometryCurrentSet, companion
    }

    package struct PasswordRecord: Hashable, Sendable {
        package static let saltByteCount = 16
        package static let costByteCount = 9
        package static let checkByteCount = 16

        /// Random for each item, so that each item has its own key.
        package let salt: [UInt8]
        /// The cost of the key derivation, encoded by the cipher.
        package let cost: [UInt8]
        /// Distinguishes a wrong password from a damaged item.
        package let check: [UInt8]

        package init(salt: [UInt8], cost: [UInt8], check: [UInt8]) {
            self.salt = salt
            self.cost = cost
            self.check = check
        }
    }

    package struct Branch: Hashable, Sendable {
        package let record: ConstraintRecord
        /// Nil if the branch has no key.
        package let wrappedKey: [UInt8]?

        package init(_ record: ConstraintRecord, wrappedKey: [UInt8]?) {
            self.record = record
            self.wrappedKey = wrappedKey
        }
    }

    /// The records of all application passwords in the tree.
    package var passwordRecords: [PasswordRecord] {
        switch self {
        case .presence, .presenceOrBiometry, .biometryAny, .biometryCurrentSet, .keyless: []
        case .applicationPassword(let record): [record]
        case .any(let branches): branches.flatMap(\.record.passwordRecords)
        case .all(let records): records.flatMap(\.passwordRecords)
        }
    }

    /// The tree without the data of its keys.
    package var constraint: AccessControl.Constraint {
        switch self {
        case .presence(.userPresence, _): .userPresence
        case .presence(.devicePasscode, _): .devicePasscode
        case .presenceOrBiometry: .userPresence
        case .biometryAny, .keyless(.biometryAny): .biometryAny
        case .biometryCurrentSet, .keyless(.biometryCurrentSet): .biometryCurrentSet
        case .keyless(.companion): .companion
        case .applicationPassword: .applicationPassword
        case .any(let branches): .any(branches.map(\.record.constraint))
        case .all(let records): .all(records.map(\.constraint))
        }
    }
}

extension AccessControl.Constraint {
    /// Whether every way to satisfy the constraint needs the passcode.
    ///
    /// Biometry counts as unsatisfiable here: it is only available for some time, and the passcode as an alternative to it always is.
    package var needsPresence: Bool {
        switch self {
        case .userPresence, .devicePasscode: true
        case .biometryAny, .biometryCurrentSet, .companion, .applicationPassword: false
        case .any(let parts): parts.contains { $0.isSatisfiable } && parts.allSatisfy { !$0.isSatisfiable || $0.needsPresence }
        case .all(let parts): parts.contains { $0.needsPresence }
        }
    }

    /// Whether every way to satisfy the constraint needs the application password.
    package var needsApplicationPassword: Bool {
        switch self {
        case .applicationPassword: true
        case .userPresence, .devicePasscode, .biometryAny, .biometryCurrentSet, .companion: false
        case .any(let parts):
            !parts.contains { $0.isSatisfiable && !$0.needsApplicationPassword } && parts.contains { $0.needsApplicationPassword }
        case .all(let parts): parts.contains { $0.needsApplicationPassword }
        }
    }

    /// Whether the constraint can be satisfied without biometry.
    package var isSatisfiable: Bool { isSatisfiable(withBiometry: false) }

    /// Whether the constraint can be satisfied, with biometry if there is any.
    package func isSatisfiable(withBiometry hasBiometry: Bool) -> Bool {
        switch self {
        case .userPresence, .devicePasscode, .applicationPassword: true
        case .biometryAny, .biometryCurrentSet: hasBiometry
        case .companion: false
        case .any(let parts): parts.contains { $0.isSatisfiable(withBiometry: hasBiometry) }
        case .all(let parts): parts.allSatisfy { $0.isSatisfiable(withBiometry: hasBiometry) }
        }
    }

    /// The biometric keys in the tree; those of `userPresence` are the ones of `biometryAny`.
    package var biometryKinds: Set<BiometryKind> {
        switch self {
        case .userPresence, .biometryAny: [.any]
        case .biometryCurrentSet: [.currentSet]
        case .devicePasscode, .companion, .applicationPassword: []
        case .any(let parts), .all(let parts): parts.reduce(into: []) { $0.formUnion($1.biometryKinds) }
        }
    }

    /// Whether biometry in place of the passcode satisfies the constraint, apart from an application password.
    package var isSatisfiedByBiometry: Bool {
        switch self {
        case .userPresence, .biometryAny, .biometryCurrentSet, .applicationPassword: true
        case .devicePasscode, .companion: false
        case .any(let parts): parts.contains { $0.isSatisfiedByBiometry }
        case .all(let parts): parts.allSatisfy { $0.isSatisfiedByBiometry }
        }
    }
}

/// The encoding of a constraint record (On-disk-format.md, "Constraints"):
///
///     version (1) = 1 ‖ node
///     node = kind (1) ‖ content of the kind
extension ConstraintRecord {
    private static let version: UInt8 = 1
    /// A key sealed to the presence key pair: encapsulated key (32) ‖ sealed key (32) ‖ tag (16).
    package static let sealedKeyByteCount = 80
    /// The size of a wrapped key.
    package static let wrappedKeyByteCount = 40
    /// Far more than the flags of an access control can express.
    package static let largestDepth = 4
    package static let largestBranchCount = 16
    /// Limits the number of key derivations for opening one item.
    private static let largestByteCount = 4_096

    private enum Kind: UInt8 {
        case userPresence = 1
        case devicePasscode = 2
        case biometryAny = 3
        case biometryCurrentSet = 4
        case companion = 5
        case applicationPassword = 6
        case sealedBiometryAny = 7
        case sealedBiometryCurrentSet = 8
        case presenceOrBiometry = 9
        case any = 16
        case all = 17
    }

    package var encoded: [UInt8] {
        var bytes = [Self.version]
        append(to: &bytes)
        return bytes
    }

    private func append(to bytes: inout [UInt8]) {
        switch self {
        case .presence(let presence, let sealedKey):
            bytes.append((presence == .userPresence ? Kind.userPresence : .devicePasscode).rawValue)
            bytes += sealedKey
        case .presenceOrBiometry(let sealedKey, let biometrySealedKey):
            bytes.append(Kind.presenceOrBiometry.rawValue)
            bytes += sealedKey + biometrySealedKey
        case .biometryAny(let sealedKey):
            bytes.append(Kind.sealedBiometryAny.rawValue)
            bytes += sealedKey
        case .biometryCurrentSet(let set, let sealedKey):
            bytes.append(Kind.sealedBiometryCurrentSet.rawValue)
            bytes += set.keys
            bytes.append(littleEndian: set.generation)
            bytes += sealedKey
        case .keyless(.biometryAny): bytes.append(Kind.biometryAny.rawValue)
        case .keyless(.biometryCurrentSet): bytes.append(Kind.biometryCurrentSet.rawValue)
        case .keyless(.companion): bytes.append(Kind.companion.rawValue)
        case .applicationPassword(let password):
            bytes.append(Kind.applicationPassword.rawValue)
            bytes += password.salt + password.cost + password.check
        case .any(let branches):
            bytes += [Kind.any.rawValue, UInt8(truncatingIfNeeded: branches.count)]
            for branch in branches {
                branch.record.append(to: &bytes)
                bytes.append(branch.wrappedKey == nil ? 0 : 1)
                bytes += branch.wrappedKey ?? []
            }
        case .all(let records):
            bytes += [Kind.all.rawValue, UInt8(truncatingIfNeeded: records.count)]
            for record in records { record.append(to: &bytes) }
        }
    }

    /// Parses `encoded`; nil for anything else, such as the record of a newer version.
    package init?(encoded: [UInt8]) {
        var reader = ByteReader(encoded)
        guard encoded.count <= Self.largestByteCount, reader.readByte() == Self.version, let record = Self.node(from: &reader, depth: 1),
            reader.isAtEnd, record.passwordCosts.count <= 1
        else { return nil }
        self = record
    }

    /// The distinct costs of application passwords in the record.
    ///
    /// A valid record has at most one. A manipulated record with many costs would make its reader run as many slow derivations.
    package var passwordCosts: Set<[UInt8]> {
        switch self {
        case .presence, .presenceOrBiometry, .biometryAny, .biometryCurrentSet, .keyless: []
        case .applicationPassword(let password): [password.cost]
        case .any(let branches): branches.reduce(into: []) { $0.formUnion($1.record.passwordCosts) }
        case .all(let records): records.reduce(into: []) { $0.formUnion($1.passwordCosts) }
        }
    }

    private static func node(from reader: inout ByteReader, depth: Int) -> ConstraintRecord? {
        guard depth <= largestDepth, let kind = reader.readByte().flatMap(Kind.init) else { return nil }
        switch kind {
        case .userPresence: return reader.readBytes(sealedKeyByteCount).map { .presence(.userPresence, sealedKey: Array($0)) }
        case .devicePasscode: return reader.readBytes(sealedKeyByteCount).map { .presence(.devicePasscode, sealedKey: Array($0)) }
        case .biometryAny: return .keyless(.biometryAny)
        case .biometryCurrentSet: return .keyless(.biometryCurrentSet)
        case .companion: return .keyless(.companion)
        case .sealedBiometryAny: return reader.readBytes(sealedKeyByteCount).map { .biometryAny(sealedKey: Array($0)) }
        case .sealedBiometryCurrentSet:
            guard let keys = reader.readBytes(BiometricSetID.keysByteCount), let generation = reader.readUInt64(),
                let sealedKey = reader.readBytes(sealedKeyByteCount)
            else { return nil }
            return .biometryCurrentSet(BiometricSetID(keys: Array(keys), generation: generation), sealedKey: Array(sealedKey))
        case .presenceOrBiometry:
            guard let sealedKey = reader.readBytes(sealedKeyByteCount), let other = reader.readBytes(sealedKeyByteCount) else { return nil }
            return .presenceOrBiometry(sealedKey: Array(sealedKey), biometrySealedKey: Array(other))
        case .applicationPassword:
            guard let salt = reader.readBytes(PasswordRecord.saltByteCount), let cost = reader.readBytes(PasswordRecord.costByteCount),
                let check = reader.readBytes(PasswordRecord.checkByteCount)
            else { return nil }
            return .applicationPassword(PasswordRecord(salt: Array(salt), cost: Array(cost), check: Array(check)))
        case .any: return branches(from: &reader, depth: depth).map { .any($0) }
        case .all: return nodes(from: &reader, depth: depth).map { .all($0) }
        }
    }

    private static func branches(from reader: inout ByteReader, depth: Int) -> [Branch]? {
        guard let count = reader.readByte(), (1...largestBranchCount).contains(Int(count)) else { return nil }
        var branches: [Branch] = []
        for _ in 0..<count {
            guard let record = node(from: &reader, depth: depth + 1), let isBound = reader.readByte(), isBound <= 1 else { return nil }
            var wrappedKey: [UInt8]?
            if isBound == 1 {
                guard let bytes = reader.readBytes(wrappedKeyByteCount) else { return nil }
                wrappedKey = Array(bytes)
            }
            branches.append(Branch(record, wrappedKey: wrappedKey))
        }
        return branches
    }

    private static func nodes(from reader: inout ByteReader, depth: Int) -> [ConstraintRecord]? {
        guard let count = reader.readByte(), (1...largestBranchCount).contains(Int(count)) else { return nil }
        var records: [ConstraintRecord] = []
        for _ in 0..<count {
            guard let record = node(from: &reader, depth: depth + 1) else { return nil }
            records.append(record)
        }
        return records
    }
}
