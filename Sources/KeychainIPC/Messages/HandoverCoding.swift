// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The encodings of what a keychain consists of when it is handed over.
extension MessageWriter {
    package mutating func write(_ keys: KeychainKeys) {
        write(keys.storeID)
        write(keys.keybag)
        write(keys.keybagGeneration)
        write(keys.deviceSecret.secret)
    }

    package mutating func write(_ rows: [HandedOverRow]) {
        makeRoom(rows.reduce(4) { $0 + $1.byteCount })
        write(UInt32(rows.count))
        for row in rows { write(row) }
    }

    private mutating func write(_ handedOver: HandedOverRow) {
        let (row, header) = (handedOver.row, handedOver.row.header)
        write(ifPresent: handedOver.quarantineSeconds) { writer, seconds in writer.write(seconds.bitPattern) }
        write(header.formatVersion)
        write(header.reference)
        write(header.accessibility.code)
        write(header.classKeyGeneration)
        write(header.revision)
        write(header.isSynchronizable)
        write(header.isTombstone)
        for digest in [header.serviceDigest, header.accountDigest, header.remainingKeyDigest, header.accessGroupDigest] { write(digest) }
        write(RowHeader.packed(header.attributeDigests))
        write(ifPresent: header.constraints) { writer, constraints in writer.write(constraints) }
        for part in [row.wrappedItemKey, row.sealedAttributes, row.sealedSecret, row.tag] { write(part) }
    }
}

extension MessageReader {
    package mutating func readKeys() throws(MalformedMessage) -> KeychainKeys {
        KeychainKeys(
            storeID: try readIdentifier(), keybag: Array(try readBytes()), keybagGeneration: try readUInt64(),
            deviceSecret: try required(try readSecret()))
    }

    package mutating func readHandedOverRows() throws(MalformedMessage) -> [HandedOverRow] {
        try readList { reader throws(MalformedMessage) in try reader.readHandedOverRow() }
    }

    private mutating func readHandedOverRow() throws(MalformedMessage) -> HandedOverRow {
        let seconds = try readIfPresent { reader throws(MalformedMessage) in
            let seconds = Double(bitPattern: try reader.readUInt64())
            guard seconds.isFinite else { throw MalformedMessage() }
            return seconds
        }
        let header = RowHeader(
            formatVersion: try readByte(), reference: try readReference(), accessibility: try readAccessibility(),
            classKeyGeneration: try readUInt32(), revision: try readIdentifier(), isSynchronizable: try readFlag(),
            isTombstone: try readFlag(), serviceDigest: try readIdentifier(), accountDigest: try readIdentifier(),
            remainingKeyDigest: try readIdentifier(), accessGroupDigest: try readIdentifier(),
            attributeDigests: try required(RowHeader.unpacked(Array(try readBytes()))),
            constraints: try readIfPresent { reader throws(MalformedMessage) in Array(try reader.readBytes()) })
        return HandedOverRow(
            SealedRow(
                header: header, wrappedItemKey: Array(try readBytes()), sealedAttributes: Array(try readBytes()),
                sealedSecret: Array(try readBytes()), tag: Array(try readBytes())),
            quarantineSeconds: seconds)
    }
}
