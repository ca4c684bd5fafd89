// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The encodings of items, queries, and their parts. Attributes have the encoding that they have in a row.
extension MessageWriter {
    package mutating func write(_ attributes: ItemAttributes) { write(attributes.encoded) }

    package mutating func write(_ query: ItemQuery) {
        write(query.itemClass.code)
        write(ifPresent: query.reference) { writer, reference in writer.write(reference) }
        write(query.attributes)
        write(query.synchronizability.code)
        write(query.tombstones == .only)
        write(ifPresent: query.hostOrSubdomain) { writer, host in writer.write(host) }
    }

    package mutating func write(_ reference: PersistentReference) {
        write(reference.itemClass.code)
        write(reference.id)
    }

    package mutating func write(_ control: AccessControl) {
        write(control.accessibility.code)
        write(ifPresent: control.constraint) { writer, constraint in writer.write(constraint) }
        write(control.allowsPrivateKeyUsageOnly)
    }

    package mutating func write(_ constraint: AccessControl.Constraint) {
        switch constraint {
        case .userPresence: write(1 as UInt8)
        case .devicePasscode: write(2 as UInt8)
        case .biometryAny: write(3 as UInt8)
        case .biometryCurrentSet: write(4 as UInt8)
        case .companion: write(5 as UInt8)
        case .applicationPassword: write(6 as UInt8)
        case .any(let parts): write(16, parts)
        case .all(let parts): write(17, parts)
        }
    }

    private mutating func write(_ code: UInt8, _ parts: [AccessControl.Constraint]) {
        write(code)
        write(UInt32(parts.count))
        for part in parts { write(part) }
    }

    package mutating func write(_ item: KeychainItem) {
        write(item.reference)
        write(item.attributes)
        write(item.accessControl)
        write(ifPresent: item.secret) { writer, secret in writer.write(secret) }
    }
}

extension MessageReader {
    package mutating func readAttributes() throws(MalformedMessage) -> ItemAttributes {
        try required(ItemAttributes(encoded: try readBytes()))
    }

    package mutating func readItemClass() throws(MalformedMessage) -> ItemClass { try required(ItemClass(code: try readByte())) }

    package mutating func readReference() throws(MalformedMessage) -> PersistentReference {
        PersistentReference(itemClass: try readItemClass(), id: try readIdentifier())
    }

    package mutating func readQuery() throws(MalformedMessage) -> ItemQuery {
        ItemQuery(
            itemClass: try readItemClass(),
            reference: try readIfPresent { reader throws(MalformedMessage) in try reader.readReference() },
            attributes: try readAttributes(),
            synchronizability: try required(ItemQuery.Synchronizability(code: try readByte())),
            tombstones: try readFlag() ? .only : .hidden,
            hostOrSubdomain: try readIfPresent { reader throws(MalformedMessage) in try reader.readText() })
    }

    package mutating func readAccessibility() throws(MalformedMessage) -> ItemAccessibility {
        try required(ItemAccessibility(code: try readByte()))
    }

    package mutating func readAccessControl() throws(MalformedMessage) -> AccessControl {
        AccessControl(
            try readAccessibility(),
            constraint: try readIfPresent { reader throws(MalformedMessage) in try reader.readConstraint() },
            allowsPrivateKeyUsageOnly: try readFlag())
    }

    package mutating func readConstraint() throws(MalformedMessage) -> AccessControl.Constraint { try readConstraint(depth: 1) }

    private mutating func readConstraint(depth: Int) throws(MalformedMessage) -> AccessControl.Constraint {
        guard depth <= ConstraintRecord.largestDepth else { throw MalformedMessage() }
        switch try readByte() {
        case 1: return .userPresence
        case 2: return .devicePasscode
        case 3: return .biometryAny
        case 4: return .biometryCurrentSet
        case 5: return .companion
        case 6: return .applicationPassword
        case 16: return .any(try readConstraints(depth: depth))
        case 17: return .all(try readConstraints(depth: depth))
        default: throw MalformedMessage()
        }
    }

    private mutating func readConstraints(depth: Int) throws(MalformedMessage) -> [AccessControl.Constraint] {
        let count = try readUInt32()
        guard (1...ConstraintRecord.largestBranchCount).contains(Int(count)) else { throw MalformedMessage() }
        var parts: [AccessControl.Constraint] = []
        for _ in 0..<count { parts.append(try readConstraint(depth: depth + 1)) }
        return parts
    }

    package mutating func readItem() throws(MalformedMessage) -> KeychainItem {
        KeychainItem(
            reference: try readReference(), attributes: try readAttributes(), accessControl: try readAccessControl(),
            secret: try readIfPresent { reader throws(MalformedMessage) in try reader.readData() })
    }
}

extension ItemQuery.Synchronizability {
    fileprivate var code: UInt8 {
        switch self {
        case .local: 0
        case .synchronizable: 1
        case .either: 2
        }
    }

    fileprivate init?(code: UInt8) {
        guard let match = Self.allCases.first(where: { $0.code == code }) else { return nil }
        self = match
    }
}

extension AttributeSelection {
    package var code: (kind: UInt8, attribute: UInt8) {
        switch self {
        case .all: (0, 0)
        case .none: (1, 0)
        case .only(let attribute): (2, attribute.rawValue)
        }
    }

    package init?(code: (kind: UInt8, attribute: UInt8)) {
        switch (code.kind, code.attribute) {
        case (0, 0): self = .all
        case (1, 0): self = .none
        case (2, let number):
            guard let attribute = Attribute(rawValue: number) else { return nil }
            self = .only(attribute)
        default: return nil
        }
    }
}
