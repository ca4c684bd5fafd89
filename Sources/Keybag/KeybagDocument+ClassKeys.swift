// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The list of class keys: its encoding, and what holds between its entries and the passcode.
///
///     entry = accessibility (1) ‖ generation (4) ‖ wrapping (1) ‖ wrapped key (40) ‖ check value (16)
extension KeybagDocument {
    static func encode(_ entry: ClassKeyEntry) -> [UInt8] {
        var bytes: [UInt8] = [entry.id.accessibility.code]
        bytes.append(littleEndian: entry.id.generation)
        bytes.append(entry.wrapping.rawValue)
        return bytes + entry.wrappedKey + entry.checkValue
    }

    static func classKeys(from bytes: ArraySlice<UInt8>, isPasscodeSet: Bool) throws(KeychainFailure) -> [ClassKeyEntry] {
        var reader = ByteReader(bytes)
        var entries: [ClassKeyEntry] = []
        while !reader.isAtEnd {
            let entry = try classKey(from: &reader)
            if let last = entries.last?.id {
                guard (last.accessibility.code, last.generation) < (entry.id.accessibility.code, entry.id.generation) else {
                    throw malformed()
                }
            }
            // A key that a lock must take away, under the device key beside a passcode, would be there whatever is locked.
            guard entry.wrapping == wrapping(of: entry.id.accessibility, isPasscodeSet: isPasscodeSet) else { throw malformed() }
            entries.append(entry)
        }
        for accessibility in Accessibility.allCases where wrapping(of: accessibility, isPasscodeSet: isPasscodeSet) != nil {
            guard entries.contains(where: { $0.id.accessibility == accessibility }) else { throw malformed() }
        }
        return entries
    }

    private static func classKey(from reader: inout ByteReader) throws(KeychainFailure) -> ClassKeyEntry {
        guard let code = reader.readByte(), let generation = reader.readUInt32(), let wrappingCode = reader.readByte(),
            let wrappedKey = reader.readBytes(KeyWrapping.wrappedByteCount), let check = reader.readBytes(ClassKeyCheck.byteCount)
        else { throw malformed() }
        guard let accessibility = Accessibility(code: code), let wrapping = Wrapping(rawValue: wrappingCode) else { throw newer() }
        guard generation > 0 else { throw malformed() }
        return ClassKeyEntry(
            id: ClassKeyID(accessibility, generation: generation), wrapping: wrapping, wrappedKey: Array(wrappedKey),
            checkValue: Array(check)
        )
    }

    /// What the keys of a class are wrapped under; nil when the class has none.
    static func wrapping(of accessibility: Accessibility, isPasscodeSet: Bool) -> Wrapping? {
        if accessibility.holderSlot != nil && isPasscodeSet { return .passcodeKey }
        return accessibility == .whenPasscodeSetThisDeviceOnly ? nil : .deviceKey
    }
}
