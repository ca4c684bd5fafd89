// SPDX-License-Identifier: Apache-2.0
import CKeychainTestShims
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTPM
import KeychainTestSupport
import Synchronization

extension ChildCommand {
    /// [--as-user UID] [--refuse-keyring] STORE-ID SELECTION: carries out each line of input on a key holder.
    ///
    /// Lines are `kind`, `epoch NUMBER`, `hold SLOT TEXT SECONDS|none`, `load SLOT`, `remove SLOT`, `refuse-keyring`, and `threads`. At the
    /// end it removes all keys.
    static func holdKeys(_ arguments: [String]) throws {
        var rest = arguments[...]
        if rest.first == "--as-user" {
            guard let user = rest.dropFirst().first.flatMap({ UInt32($0) }) else { throw BadArguments() }
            // The program's file may be out of that user's reach; it is already loaded.
            guard setregid(user, user) == 0, setreuid(user, user) == 0 else { throw BadArguments() }
            rest = rest.dropFirst(2)
        }
        if rest.first == "--refuse-keyring" {
            guard keychain_test_refuse_keyring() == 0 else { throw BadArguments() }
            rest = rest.dropFirst()
        }
        let holder = try HolderInChild(storeID: rest.first, selection: rest.last)
        say("ready")
        while let line = readLine() {
            do throws(KeychainFailure) {
                say(try holder.perform(line.split(separator: " ").map(String.init)))
            } catch {
                say("failed \(error.line)")
            }
        }
        for slot in KeyHolderSlot.ofClassKeys { try holder.holder.remove(slot) }
    }
}

private final class HolderInChild: Sendable {
    let holder: any KeyHolder
    private let epoch: EpochInChild

    init(storeID: String?, selection: String?) throws {
        guard let number = storeID.flatMap({ UInt64($0) }), let selection = selection.flatMap(KeyHolderSelection.init(rawValue:)) else {
            throw BadArguments()
        }
        let epoch = EpochInChild()
        self.epoch = epoch
        holder = try selection.makeHolder(storeID: StoreID(high: 0, low: number)) { epoch.value }
    }

    func perform(_ words: [String]) throws(KeychainFailure) -> String {
        let slot = words.dropFirst().first.flatMap(KeyHolderSlot.init(rawValue:)) ?? .unlocked
        switch words.first {
        case "kind": return "\(holder.kind)"
        case "epoch":
            epoch.value = LockEpoch(rawValue: words.last.flatMap { Int64($0) } ?? 0)
            return "done"
        case "hold" where words.count == 4:
            let text = Array(words[2].utf8)
            // As many bytes as the buffer has.
            let secret = try unsafe SecretBytes(byteCount: text.count) { unsafe $0.copyBytes(from: text) }
            try holder.hold(secret, in: slot, timeoutSeconds: UInt32(words[3]), lockEpoch: epoch.value)
            return "done"
        case "load":
            guard let held = try holder.load(slot, for: .use, lockEpoch: epoch.value) else { return "nothing" }
            // The text is the test's, and no secret.
            return unsafe held.secret.withBytes { unsafe "held " + String(decoding: $0, as: UTF8.self) }
        case "remove":
            try holder.remove(slot)
            return "done"
        case "refuse-keyring":
            return keychain_test_refuse_keyring() == 0 ? "done" : "impossible"
        case "threads":
            return "\((try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0)"
        default: throw KeychainFailure(.parameter, "unknown: \(words)")
        }
    }
}

/// The lock epoch, in place of a store's.
private final class EpochInChild: Sendable {
    private let number = Atomic<Int64>(7)

    var value: LockEpoch {
        get { LockEpoch(rawValue: number.load(ordering: .sequentiallyConsistent)) }
        set { number.store(newValue.rawValue, ordering: .sequentiallyConsistent) }
    }
}

extension ChildCommand {
    /// TCTI: seals, unseals, and fails in several ways; reports success if no descriptor leaks.
    static func sealAndFail(_ arguments: [String]) throws {
        guard let tcti = arguments.first else { throw BadArguments() }
        let device = try TPMDevice(tcti: tcti)
        // Descriptors that stay open in the process are open after the first round.
        try useAndFail(device)
        let before = try openDescriptorCount()
        for _ in 0..<20 { try useAndFail(device) }
        guard try openDescriptorCount() == before else { throw BadArguments() }
        say("sealed and failed")
    }

    private static func useAndFail(_ device: TPMDevice) throws {
        let secret = try SecretBytes(randomByteCount: 32)
        let guarded = try device.seal(secret, authorization: .bytes(SecretBytes(randomByteCount: 32)))
        let open = try device.seal(secret, authorization: .none)
        _ = try device.unseal(open, authorization: .none)
        let damaged = SealedObject(
            rootKeyName: open.rootKeyName, publicArea: open.publicArea,
            privateArea: open.privateArea.dropLast() + [open.privateArea[open.privateArea.count - 1] ^ 1])
        let failures = [
            Result { _ = try device.unseal(guarded, authorization: .bytes(SecretBytes(randomByteCount: 32))) },
            Result { _ = try device.unseal(damaged, authorization: .none) },
            Result { _ = try TPMDevice(tcti: "swtpm:path=/nonexistent").status() },
            Result { _ = try TPMDevice(tcti: "nosuchmodule").status() },
        ]
        for case .success in failures { throw BadArguments() }
    }
}

extension ChildCommand {
    /// COMMAND [ARGUMENT ...]: executes the command without access to the kernel's keyring.
    static func withoutKeyring(_ arguments: [String]) throws {
        guard let command = arguments.first, keychain_test_refuse_keyring() == 0 else { throw BadArguments() }
        // Copies that live until execvp replaces this program.
        let pointers = unsafe arguments.map { unsafe strdup($0) } + [nil]
        unsafe execvp(command, pointers)
        throw BadArguments()
    }
}
