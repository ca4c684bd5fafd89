// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
package import KeychainCore

/// Rows for tests of stores: well formed, and sealed by nobody.
package enum SampleRows {
    /// An identifier that stands for a small number, so that a test can say which digest is which.
    package static func digest(_ number: UInt64) -> IndexDigest { Identifier128(high: 0xD16E_0000 + number, low: ~number) }

    /// A row like no other: equal arguments give different identifiers, revisions and sealed bytes.
    package static func row(
        service: UInt64 = 1, account: UInt64, remaining: UInt64 = 1, group: UInt64 = 1, itemClass: ItemClass = .genericPassword,
        accessibility: Accessibility = .whenUnlocked, isSynchronizable: Bool = false, isTombstone: Bool = false,
        generation: UInt32 = 3, attributes: [AttributeDigest] = [], constraints: [UInt8]? = nil, secretByteCount: Int = 40
    ) -> SealedRow {
        SealedRow(
            header: RowHeader(
                reference: PersistentReference(itemClass: itemClass, id: .random()), accessibility: accessibility,
                classKeyGeneration: generation, revision: .random(), isSynchronizable: isSynchronizable, isTombstone: isTombstone,
                serviceDigest: digest(service), accountDigest: digest(account), remainingKeyDigest: digest(remaining),
                accessGroupDigest: digest(group), attributeDigests: attributes, constraints: constraints),
            wrappedItemKey: bytes(40), sealedAttributes: bytes(120), sealedSecret: bytes(secretByteCount), tag: bytes(32))
    }

    private static func bytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}
#endif
