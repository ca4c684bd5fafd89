// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTestSupport
import Testing

@testable import Keybag

@Suite("What checking a passcode leaves in memory")
struct PasscodeResidueTests {
    /// These, and in no other test: its search would find theirs.
    private static let passcode = OwnMemory.Needle(masked: [
        0x3B, 0x30, 0x30, 0x31, 0x39, 0x30, 0x75, 0x25, 0x34, 0x26, 0x26, 0x36, 0x3A, 0x31, 0x30, 0x75, 0x65, 0x6D,
        0x64, 0x60,
    ])

    /// What scrypt makes of the passcode.
    ///
    /// With the device secret, which lies in a file, it gives the passcode key.
    private static let stretchedPasscode = OwnMemory.Needle(masked: [
        0xB7, 0xA1, 0xBD, 0x43, 0xC2, 0x26, 0xC8, 0x4C, 0x99, 0xFA, 0xBF, 0x8E, 0xDA, 0x83, 0xA6, 0x1E, 0x53, 0xBD,
        0xBD, 0x13, 0xB7, 0x11, 0x69, 0xDD, 0x1A, 0xAD, 0xB6, 0x82, 0x9A, 0xD3, 0x51, 0xBC,
    ])

    private static let passcodeKey = OwnMemory.Needle(masked: [
        0x69, 0xF7, 0x2B, 0x03, 0xAB, 0xE0, 0x89, 0xF5, 0x42, 0xE7, 0xEF, 0x6D, 0xC5, 0xFB, 0xE6, 0x9A, 0x4E, 0xCC,
        0x9E, 0xE5, 0x16, 0x30, 0x8E, 0xA4, 0xAE, 0x37, 0xCA, 0xA5, 0x88, 0x02, 0x6F, 0xC3,
    ])

    private func record() throws -> PasscodeRecord {
        var encoded: [UInt8] = [1] + Array(0..<32) + [10]
        encoded.append(littleEndian: UInt32(8))
        encoded.append(littleEndian: UInt32(1))
        return try PasscodeRecord(encoded: encoded[...])
    }

    private func deviceSecret() throws -> SecretBytes {
        // The region is written within its bounds.
        try unsafe SecretBytes(byteCount: DeviceSecret.byteCount) { buffer in
            for index in buffer.indices { unsafe buffer[index] = UInt8(100 + index) }
        }
    }

    private func derive() throws -> SecretBytes {
        try PasscodeKey.derive(
            from: Passcode(normalized: Self.passcode.secret()), record(), deviceSecret: deviceSecret(), storeID: storeID())
    }

    private func storeID() throws -> StoreID { try #require(StoreID(Array(0..<16))) }

    @Test("Once the key is gone, neither it is found nor the passcode nor what lies between")
    func nothingIsLeft() throws {
        do {
            let passcode = try Self.passcode.secret()
            #expect(try OwnMemory.holds(Self.passcode))
            #expect(passcode.byteCount > 0)
        }
        // Not every derivation leaves its traces where the next one does not write over them.
        for _ in 0..<4 { _ = try derive() }
        do {
            let key = try derive()
            #expect(try OwnMemory.holds(Self.passcodeKey))
            #expect(key.byteCount == ClassKey.byteCount)
        }
        #expect(try !OwnMemory.holds(Self.passcode))
        #expect(try !OwnMemory.holds(Self.stretchedPasscode))
        #expect(try !OwnMemory.holds(Self.passcodeKey))

        // Last, since it leaves traces: what was searched for in vain is what it is said to be.
        let combined = try Self.stretchedPasscode.secret().copiedBytes() + deviceSecret().copiedBytes()
        // The bytes are copied within the closure.
        let secret = try unsafe SecretBytes(byteCount: combined.count) { unsafe $0.copyBytes(from: combined) }
        let key = try KeyPurpose.passcodeKey.derive(from: secret, storeID: storeID())
        #expect(try key.copiedBytes() == Self.passcodeKey.secret().copiedBytes())
    }
}
