// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import Keybag
import KeychainCore
import KeychainTestSupport
import Testing

@testable import KeychainEngine

@Suite("The administrator's rules for passcodes")
struct PasscodePolicyTests {
    /// `mode`: nil for no file.
    private func policy(
        _ text: String, mode: Int? = 0o644, acceptsOwnFile: Bool = true, prepare: (String) throws -> Void = { _ in }
    ) throws -> PasscodePolicy {
        try withTemporaryDirectory { directory in
            let path = directory + "/policy.json"
            if let mode {
                try text.write(toFile: path, atomically: false, encoding: .utf8)
                try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            }
            try prepare(path)
            return try PasscodePolicy(filePath: path, acceptsOwnFile: acceptsOwnFile)
        }
    }

    private func failure(_ body: () throws -> PasscodePolicy) throws -> KeychainFailure {
        let failure = try #require(#expect(throws: KeychainFailure.self) { try body() })
        #expect(failure.status == .notAvailable)
        #expect(failure.remedy == .correctPolicy)
        return failure
    }

    @Test("Without a file, a passcode has at least 6 characters")
    func none() throws {
        #expect(try policy("", mode: nil) == PasscodePolicy(minimumLength: 6, cost: .standard))
    }

    @Test("The values hold as they are, above the defaults and below", arguments: [(12, 256), (1, 1)])
    func values(length: Int, mebibytes: Int) throws {
        let cost = try #require(PasscodeCost(memoryMebibytes: mebibytes))
        #expect(
            try policy(#"{"passcodeMinimumLength": \#(length), "passcodeMemoryMiB": \#(mebibytes)}"#)
                == PasscodePolicy(minimumLength: length, cost: cost))
    }

    @Test(
        "What is not understood is an error, and never passed over",
        arguments: [
            "", "12", "[]", #"{"passcodeMinimumLength": "12"}"#, #"{"passcodeMinimumLength": 0}"#, #"{"passcodeMemoryMiB": 100}"#,
            #"{"passcodeMemoryMiB": 2048}"#, #"{"passcodeminimumlength": 12}"#,
        ])
    func notUnderstood(text: String) throws {
        #expect(try failure { try policy(text) }.reason.contains("/policy.json"))
    }

    @Test("A link that leads nowhere is not the same as no policy")
    func danglingLink() throws {
        let failure = try failure { try policy("", mode: nil) { _ = unsafe symlink("nowhere", $0) } }
        #expect(failure.reason.hasSuffix("is a link that leads nowhere"))
    }

    @Test("A directory that is a link leading nowhere is not the same as no policy")
    func danglingDirectory() throws {
        try withTemporaryDirectory { directory in
            // The paths are copied for the call.
            _ = unsafe symlink("nowhere", directory + "/keychain")
            let failure = try failure { try PasscodePolicy(filePath: directory + "/keychain/policy.json") }
            #expect(failure.reason.hasSuffix("is a link that leads nowhere"))
        }
    }

    @Test("A directory in its place is refused")
    func directory() throws {
        _ = try failure {
            try policy("", mode: nil) { try FileManager.default.createDirectory(atPath: $0, withIntermediateDirectories: false) }
        }
    }

    @Test("One that others can change is refused", arguments: [0o664, 0o646, 0o666])
    func writableByOthers(mode: Int) throws {
        #expect(try failure { try policy("{}", mode: mode) }.reason.hasSuffix("can be changed by others: run chmod go-w on it"))
    }

    @Test("One that does not belong to root is refused, also if it is the user's own", .enabled(if: geteuid() != 0))
    func ownFile() throws {
        #expect(try failure { try policy("{}", acceptsOwnFile: false) }.reason.hasSuffix("does not belong to root: run chown root on it"))
    }

    @Test("One that belongs to another user is refused, by root too", .enabled(if: geteuid() == 0))
    func othersFile() throws {
        // The path is copied for the call.
        let failure = try failure { try policy("{}") { _ = unsafe chown($0, 12_345, 12_345) } }
        #expect(failure.reason.hasSuffix("does not belong to root: run chown root on it"))
    }

    @Test("A failure names the policy and not the keychain")
    func namesThePolicy() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/etc.json"
            try "no".write(toFile: path, atomically: true, encoding: .utf8)
            let keychain = LocalKeychain(home: directory + "/home") {
                $0.policyPath = path
                $0.acceptsOwnPolicy = true
            }
            let failure = #expect(throws: KeychainFailure.self) { try keychain.set("swordfish") }
            #expect(failure?.reason.hasPrefix(path) == true, "\(failure?.reason ?? "none")")
        }
    }
}
