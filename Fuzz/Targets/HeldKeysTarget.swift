// SPDX-License-Identifier: Apache-2.0
internal import Crypto

@testable internal import Keybag
@testable internal import KeychainCore
@testable internal import KeychainEngine

/// A key holder's payload, which is accepted only if it is exactly the keys.
final class HeldKeysTarget: FuzzTarget {
    static let name = "held-keys"

    private let payload: HolderPayload
    private let expected: [UInt8]

    init() throws {
        (payload, expected) = try Self.example()
    }

    private static func example() throws -> (HolderPayload, [UInt8]) {
        let deviceKey = try FixedKeys.secret(9)
        let boxes = try [ClassKeyID(.whenUnlocked, generation: 1), ClassKeyID(.whenUnlocked, generation: 2)].map {
            SharedClassKey(try FixedKeys.classKey($0))
        }
        let content = KeybagDocument.Content(
            generation: 3, protector: .init(kind: .keyFile), wrappedIndexKey: [], wrappedRowTagKey: [],
            classKeys: try boxes.map { try $0.entry(.passcodeKey, under: deviceKey, storeID: FixedKeys.storeID) })
        let document = KeybagDocument(storeID: FixedKeys.storeID, content: content, authenticatedBy: try HMACKey(deviceKey))
        let payload = HolderPayload(of: document, slot: .unlocked)
        let filled = try payload.filled(with: boxes)
        // Copied within the closure.
        return (payload, unsafe filled.withBytes { unsafe Array($0) })
    }

    static func seeds() throws -> [[UInt8]] {
        let secret = try example().1
        return [[0] + secret, [1, 1] + Array(repeating: 0, count: 12) + secret, [1, 2]]
    }

    func run(_ input: [UInt8]) throws {
        guard let mode = input.first else { return }
        let bytes = Array(input.dropFirst())
        if mode & 1 == 1 { try checkKernelKey(bytes) } else { try checkPayload(bytes) }
    }

    private func checkPayload(_ bytes: [UInt8]) throws {
        guard !bytes.isEmpty else { return }
        // The buffer has room for all of them.
        let secret = try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
        expect(try payload.isValid(secret) == (bytes == expected), "a payload is taken for what it is not")
        for index in [-1, 0, 1, 2, .max / 64] {
            _ = attempt(failingWith: .internal) { () throws(KeychainFailure) in
                try HolderPayload.key(at: index, in: secret)
            }
        }
    }

    /// The content of a key in the kernel's keyring.
    private func checkKernelKey(_ bytes: [UInt8]) throws {
        // Read within the closure, and copied.
        let again = try unsafe bytes.withUnsafeBytes { bytes -> [UInt8]? in
            switch try unsafe KernelKeyContent.read(bytes) {
            case .content(let content):
                let encoded = try KernelKeyContent.encoded(
                    content.secret, timeoutSeconds: content.timeoutSeconds, lockEpoch: content.lockEpoch)
                return unsafe encoded.withBytes { unsafe Array($0) }
            case .newerFormat: return nil
            case .malformed: return nil
            }
        }
        expect(again == nil || again == bytes, "a key's content is accepted in a form that is never written")
    }
}
