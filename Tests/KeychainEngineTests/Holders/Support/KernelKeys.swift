// SPDX-License-Identifier: Apache-2.0
import CKeychainShims
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

/// A store's place in the kernel's keyring for one test; empty again afterwards.
final class KernelKeys: Sendable {
    let storeID = StoreID(high: 0, low: .random(in: 0 ... .max))

    deinit {
        for slot in KeyHolderSlot.ofClassKeys {
            // What has come to its end cannot be removed, but replaced. Text and bytes are copied for the call.
            let serial = unsafe keychain_keyring_hold(description(of: slot), [0], 1, 0)
            _ = keychain_keyring_invalidate(serial)
        }
    }

    func holder(
        epoch: ManualEpoch = ManualEpoch(), isInUserNamespace: Bool = false, time: any MonotonicTime = SystemMonotonicTime()
    ) -> KernelKeyHolder {
        KernelKeyHolder(storeID: storeID, epochSource: epoch.source, isInUserNamespace: isInUserNamespace, time: time)
    }

    func description(of slot: KeyHolderSlot) -> String {
        "keychain:\(storeID.hexadecimal):\(slot.rawValue):0:0"
    }

    func serial(of slot: KeyHolderSlot = .unlocked) -> Int32? {
        // The text is copied for the call.
        let serial = unsafe keychain_keyring_search(description(of: slot))
        return serial > 0 ? serial : nil
    }

    /// Puts a key there that no holder has made.
    func plant(_ content: [UInt8], in slot: KeyHolderSlot = .unlocked) {
        // Text and bytes are copied for the call.
        let serial = unsafe keychain_keyring_hold(description(of: slot), content, content.count, 0)
        #expect(serial > 0)
    }

    /// The kernel's own words about the key: number, flags, uses, time left, permission, description.
    func facts(of slot: KeyHolderSlot = .unlocked) throws -> [Substring] {
        // What was replaced may still be listed for a while, so the number tells. While other tests add and remove keys, the
        // list may leave one out that is there: it is looked at again.
        let serial = String(try #require(self.serial(of: slot)), radix: 16)
        for _ in 0..<1_000 {
            // Read to its end: a whole file at once would be the first part that the kernel gives of it.
            let list = try FileHandle(forReadingFrom: URL(filePath: "/proc/keys")).readToEnd() ?? Data()
            let all = String(decoding: list, as: UTF8.self).split(separator: "\n").map { $0.split(separator: " ") }
            if let facts = all.first(where: { $0[0].drop { $0 == "0" } == serial }) { return facts }
        }
        throw NotListed()
    }

    struct NotListed: Error {}

    func timeLeft(of slot: KeyHolderSlot = .unlocked) throws -> String { String(try facts(of: slot)[3]) }
}

/// What a test of the kernel's keyring needs, and a container may refuse.
enum KernelKeyringNeeds {
    static let keyring = KernelKeyHolder.isPossible

    static let keyringAsRoot = keyring && geteuid() == 0

    static let userNamespaces = keyring && (try? ChildProcess.run("unshare", ["-Ur", "true"]).ending) == .exited(0)
}
