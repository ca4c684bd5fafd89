// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import Keybag
import KeychainCore
import KeychainEngine
import KeychainStore
import KeychainTestSupport
import Testing

/// Containers with one user ID in one user namespace share the kernel's keyring of that user, but not their files.
@Suite("A process with access to the kernel's keyring alone", .blocking, .requiresKeyctl)
struct KeyringOnlyTests {
    private static let passcode = "swordfish"

    /// Reads every key of a store in the user's keyring, as another process of the user that does not see the store's directory.
    ///
    /// As root, the process is in a mount namespace and a process namespace of its own, like a container.
    private func keysInKeyring(of storeID: StoreID, hiding home: String) throws -> [String: [UInt8]] {
        let inContainer = geteuid() == 0
        let script = """
            \(inContainer ? "mount -t tmpfs none \"$hidden\"; test ! -e \"$hidden/keychain.db\"" : "")
            keyctl list @u | sed -n "s/^ *\\([0-9]*\\):.* user: keychain:$store:/\\1 keychain:$store:/p" | while read -r serial name; do
                echo "$name $(keyctl pipe $serial | od -An -v -tx1 | tr -d ' \\n')"
            done
            """
        let shell = ["/bin/sh", "-euc", script]
        let command = inContainer ? ["unshare", "--mount", "--pid", "--fork", "--mount-proc"] + shell : shell
        let run = try ChildProcess.run(
            command[0], Array(command.dropFirst()),
            environment: ["PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "hidden": home, "store": storeID.hexadecimal, "HOME": "/nonexistent"])
        #expect(run.ending == .exited(0), "\(run.output)")
        var keys: [String: [UInt8]] = [:]
        for line in run.output.split(separator: "\n") {
            let words = line.split(separator: " ")
            try #require(words.count == 2, "\(line)")
            let digits = Array(words[1].utf8)
            keys[String(words[0].split(separator: ":")[2])] = try stride(from: 0, to: digits.count, by: 2).map {
                try #require(UInt8(String(decoding: digits[$0..<($0 + 2)], as: UTF8.self), radix: 16))
            }
        }
        return keys
    }

    /// The names of the secrets of which either half is in the content.
    private func secretsFound(in content: [UInt8], _ secrets: [String: [UInt8]]) -> Set<String> {
        Set(
            secrets.filter { _, secret in
                content.firstRange(of: secret.prefix(16)) != nil || content.firstRange(of: secret.suffix(16)) != nil
            }.keys)
    }

    @Test("It finds the payloads and none of the keys in them; the process with the store opens them")
    func sealed() throws {
        try withLocalKeychain(holder: .kernelKeyring) { keychain, home in
            try keychain.addItem("there", "secret of there", .whenUnlocked)
            try keychain.set(Self.passcode)
            let opened = try OpenedStore(home: home)
            var secrets: [String: [UInt8]] = [:]
            for (id, key) in try opened.classKeys(of: opened.unlockedKeys(Self.passcode)) {
                secrets["\(id.accessibility.rawValue) \(id.generation)"] = key
            }
            // The bytes are copied within the closure.
            secrets["device"] = unsafe opened.deviceSecret.withBytes { unsafe Array($0) }
            #expect(secrets.count > 7)

            let found = try keysInKeyring(of: opened.store.storeID, hiding: home)
            #expect(Set(found.keys) == ["unlocked", "first-unlock"])
            for content in found.values {
                #expect(content.count > 100)
                #expect(secretsFound(in: content, secrets) == [])
            }

            // The same bytes contain the keys for a process that has the device secret.
            let payload = try #require(try opened.heldPayload(.unlocked))
            #expect(found["unlocked"]?.suffix(payload.count) == payload[...])
            let keys = try #require(try opened.openedPayload(payload, in: .unlocked))
            #expect(secretsFound(in: keys, secrets).isSuperset(of: ["ak 2", "aku 2", "akpu 2"]))
            #expect(try LocalKeychain.withCheapPasscode(home: home, holder: .kernelKeyring).secret(of: "there") == "secret of there")

            // The planted fault: keys that are not sealed are found in the same way.
            let unsealed = try unsafe SecretBytes(byteCount: keys.count) { unsafe $0.copyBytes(from: keys) }
            try opened.holder(.kernelKeyring).forKeybag(opened.keybag.identity)
                .hold(unsealed, in: .unlocked, timeoutSeconds: nil, lockEpoch: opened.store.lockEpoch())
            let planted = try #require(try keysInKeyring(of: opened.store.storeID, hiding: home)["unlocked"])
            #expect(secretsFound(in: planted, secrets).isSuperset(of: ["ak 2", "aku 2", "akpu 2"]))
        }
    }

    /// The lock epoch beside the payload is not secret.
    @Test("It does not undo a lock by putting a payload back with the new lock epoch", arguments: [LockExtent.whenUnlocked, .everything])
    func replayed(_ extent: LockExtent) throws {
        try withLocalKeychain(holder: .kernelKeyring) { keychain, home in
            try keychain.set(Self.passcode)
            let opened = try OpenedStore(home: home)
            let payload = try #require(try opened.heldPayload(.unlocked))
            try keychain.lock(extent)
            let secret = try unsafe SecretBytes(byteCount: payload.count) { unsafe $0.copyBytes(from: payload) }
            try opened.holder(.kernelKeyring).forKeybag(opened.keybag.identity)
                .hold(secret, in: .unlocked, timeoutSeconds: nil, lockEpoch: opened.store.lockEpoch())
            #expect(try keychain.sessionStatus().state != .unlocked)
            #expect(try LocalKeychain.withCheapPasscode(home: home, holder: .kernelKeyring).sessionStatus().state != .unlocked)
        }
    }

    @Test("With a keychain of its own and another device secret, it opens nothing that it finds")
    func otherDeviceSecret() throws {
        try withLocalKeychain(holder: .kernelKeyring) { keychain, home in
            try keychain.set(Self.passcode)
            let opened = try OpenedStore(home: home)
            try withLocalKeychain(holder: .kernelKeyring) { other, otherHome in
                try other.set(Self.passcode)
                let attacker = try OpenedStore(home: otherHome)
                for slot in KeyHolderSlot.ofClassKeys {
                    let payload = try #require(try opened.heldPayload(slot))
                    #expect(try attacker.openedPayload(payload, in: slot) == nil)
                    #expect(try opened.openedPayload(payload, in: slot) != nil)
                }
            }
        }
    }
}
