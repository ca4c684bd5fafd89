// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@Suite("Identifiers and references")
struct IdentifierTests {
    private let bytes: [UInt8] = [0, 1, 2, 3, 4, 5, 6, 7, 0xF8, 0xF9, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF]

    @Test("An identifier is sixteen bytes, in order")
    func identifier() throws {
        let identifier = try #require(Identifier128(bytes))
        #expect(identifier.bytes == bytes)
        #expect(identifier.hexadecimal == "0001020304050607f8f9fafbfcfdfeff")
        #expect(identifier == Identifier128(high: 0x0001_0203_0405_0607, low: 0xF8F9_FAFB_FCFD_FEFF))
        // The buffer is read during the call.
        #expect(unsafe bytes.withUnsafeBytes { unsafe Identifier128(buffer: $0) } == identifier)
        #expect(Identifier128.random() != Identifier128.random())
    }

    @Test("Any other length is refused", arguments: [0, 15, 17, 32])
    func otherLength(_ byteCount: Int) {
        #expect(Identifier128([UInt8](repeating: 0, count: byteCount)) == nil)
        let short = [UInt8](repeating: 0, count: min(byteCount, 15))
        // The buffer is read during the call.
        #expect(unsafe short.withUnsafeBytes { unsafe Identifier128(buffer: $0) } == nil)
    }

    @Test("A persistent reference is the class's letters and the item's identifier", arguments: ItemClass.allCases)
    func reference(_ itemClass: ItemClass) throws {
        let reference = PersistentReference(itemClass: itemClass, id: try #require(ItemID(bytes)))
        #expect(reference.data == Data(itemClass.rawValue.utf8) + Data(bytes))
        #expect(reference.data.count == PersistentReference.byteCount)
        #expect(PersistentReference(reference.data) == reference)
        #expect(PersistentReference((Data([0]) + reference.data).dropFirst()) == reference, "a slice is read from its start")
    }

    @Test("Anything else is not a reference")
    func notReferences() {
        let good = Data("genp".utf8) + Data(bytes)
        for bad in [Data(), good.dropLast(), good + [0], Data("genq".utf8) + Data(bytes), Data([0xFF, 0xFE, 0, 0]) + Data(bytes)] {
            #expect(PersistentReference(bad) == nil)
        }
    }

    @Test("Each class's number is its own, and leads back to it")
    func classCodes() {
        #expect(Set(ItemClass.allCases.map(\.code)).count == ItemClass.allCases.count)
        for itemClass in ItemClass.allCases { #expect(ItemClass(code: itemClass.code) == itemClass) }
        #expect(ItemClass(code: 0) == nil && ItemClass(code: 6) == nil)
    }

    @Test("Accessibilities are numbered as in the on-disk format")
    func accessibilityCodes() {
        let codes: [(String, UInt8)] = [("ak", 6), ("ck", 7), ("dk", 8), ("aku", 9), ("cku", 10), ("dku", 11), ("akpu", 12)]
        for (name, code) in codes {
            #expect(Accessibility(rawValue: name)?.code == code)
            #expect(Accessibility(code: code)?.rawValue == name)
            #expect(Accessibility(code: code)?.isThisDeviceOnly == name.hasSuffix("u"))
        }
        #expect(codes.count == Accessibility.allCases.count)
        #expect(Accessibility(code: 5) == nil && Accessibility(code: 13) == nil)
    }
}
