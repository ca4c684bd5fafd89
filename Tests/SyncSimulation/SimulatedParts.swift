// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

/// The parts around the engine of a device, which the simulator replaces to be fast.
package enum PartsKind: Sendable {
    /// An in-memory ledger and fake cryptography.
    case simulated
    /// The store and the cryptography of the product.
    ///
    /// Their random numbers do not come from the seed.
    case production
}

/// The cryptography and the disks of a simulation.
protocol SimulatedParts {
    var cipher: any CircleCipher { get }

    /// Returns the keys of a device that are derived from this seed.
    func keys(seed: [UInt8]) throws(KeychainFailure) -> any CircleDeviceKeys

    func makeDisk() throws -> any SimulatedDisk

    /// Opens a content for the oracle; nil if its author, whom `key` asks, does not have the key.
    func opened(_ sealed: SealedContent, header: [UInt8], under key: () -> SharedSecretBytes?) throws(KeychainFailure) -> [UInt8]?

    /// Returns the content as an item has it on the way between devices.
    func encoded(_ content: SimulatedContent) -> SyncContent

    /// Parses `encoded`; nil if it is not the content of a simulated item.
    func decoded(_ content: SyncContent) -> SimulatedContent?
}

/// An in-memory ledger and fake cryptography.
struct FakeParts: SimulatedParts {
    let cipher: any CircleCipher

    init(seed: UInt64) { cipher = FakeCipher(seed: seed) }

    func keys(seed: [UInt8]) -> any CircleDeviceKeys { FakeDeviceKeys(seed: seed) }
    func makeDisk() -> any SimulatedDisk { MemoryLedger() }

    func opened(_ sealed: SealedContent, header: [UInt8], under key: () -> SharedSecretBytes?) -> [UInt8]? {
        FakeCipher.contentWithoutKey(sealed)
    }

    func encoded(_ content: SimulatedContent) -> SyncContent { content.content }
    func decoded(_ content: SyncContent) -> SimulatedContent? { SimulatedContent(content) }
}
