// SPDX-License-Identifier: Apache-2.0
import BenchmarkReport
import Foundation
import KeychainServices

/// Measures the cost of a passcode.
///
/// Runs in a process of its own, whose keychain is in a temporary folder.
struct LockMeasurement {
    struct UnexpectedStatus: Error {
        let status: OSStatus
    }

    static let passcode = "benchmark passcode"
    private static let itemCount = 1_000

    let sampleCount: Int

    func run() throws -> Report {
        // The same item in two classes: the key holder has the keys of one, the keybag those of the other.
        for index in 0..<Self.itemCount {
            try Self.add("device-bound-\(index)", kSecAttrAccessibleAlways)
            try Self.add("under-passcode-\(index)", kSecAttrAccessibleWhenUnlocked)
        }
        let session = try KeychainSession.current()
        try session.setPasscode(Self.passcode)
        defer { try? session.lock(includingAfterFirstUnlock: true) }

        var (deviceBound, underPasscode) = (Samples(), Samples())
        let blockSize = 100
        for start in stride(from: 0, to: sampleCount, by: blockSize) {
            // They take turns, so that a change in the machine's load touches both.
            deviceBound.append(try Samples.measure(blockSize) { try Self.read("device-bound-\((start + $0) % Self.itemCount)") })
            underPasscode.append(try Samples.measure(blockSize) { try Self.read("under-passcode-\((start + $0) % Self.itemCount)") })
        }
        var (unlock, lock, firstRead) = (Samples(), Samples(), Samples())
        for _ in 0..<15 {
            try lock.measure { try session.lock() }
            try unlock.measure { try session.unlock(passcode: Self.passcode) }
        }
        for _ in 0..<30 {
            let command = Command(Program.path, ["first-read"], environment: ProcessInfo.processInfo.environment)
            firstRead.append(nanoseconds: try JSONDecoder().decode(UInt64.self, from: command.output(timeoutSeconds: 60)))
        }
        let protected = try measureProtectedItems()
        let summaries =
            [
                deviceBound.summary(.readDeviceBound), underPasscode.summary(.readUnderPasscode), lock.summary(.lock),
                unlock.summary(.unlock), firstRead.summary(.firstRead),
            ] + protected
        return Report(itemCount: 2 * Self.itemCount, summaries: summaries, peakMemory: 0)
    }

    /// Items that require authentication; a script enters the passcode immediately.
    private func measureProtectedItems() throws -> [Summary] {
        guard
            let control = SecAccessControlCreateWithFlags(
                kCFAllocatorDefault, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly, .userPresence, nil)
        else { throw UnexpectedStatus(status: errSecParam) }
        var (adding, asking, reusing) = (Samples(), Samples(), Samples())
        for index in 0..<100 {
            var item = Self.query("protected-\(index)")
            item[kSecAttrAccessControl as String] = control
            item[kSecValueData as String] = Data("a token of about forty characters, as most".utf8)
            try adding.measure { try Self.check(SecItemAdd(item as CFDictionary, nil)) }
        }
        for index in 0..<15 { try asking.measure { try Self.read("protected-\(index)") } }
        let context = LAContext()
        let options = [kSecUseAuthenticationContext as String: context]
        try Self.read("protected-0", options)
        for index in 0..<1_000 { try reusing.measure { try Self.read("protected-\(index % 100)", options) } }
        context.invalidate()
        return [adding.summary(.addProtected), asking.summary(.readAsking), reusing.summary(.readWithContext)]
    }

    /// The duration of the first read in this process, in nanoseconds: it opens the keychain and requests the keys.
    static func firstRead() throws -> UInt64 {
        var samples = Samples()
        try samples.measure { try read("under-passcode-1") }
        return samples.nanoseconds[0]
    }

    private static func add(_ account: String, _ accessibility: CFString) throws {
        var item = query(account)
        item[kSecAttrAccessible as String] = accessibility
        item[kSecValueData as String] = Data("a token of about forty characters, as most".utf8)
        try check(SecItemAdd(item as CFDictionary, nil))
    }

    private static func read(_ account: String, _ options: [String: Any] = [:]) throws {
        var search = query(account).merging(options) { _, new in new }
        search[kSecReturnData as String] = true
        var result: CFTypeRef?
        try check(unsafe SecItemCopyMatching(search as CFDictionary, &result))
    }

    private static func query(_ account: String) -> [String: Any] {
        [
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: "benchmark",
            kSecAttrAccount as String: account,
        ]
    }

    private static func check(_ status: OSStatus) throws {
        guard status == errSecSuccess else { throw UnexpectedStatus(status: status) }
    }
}
