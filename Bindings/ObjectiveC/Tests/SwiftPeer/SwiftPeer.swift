// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: NeverForceUnwrap
// The identifiers are written here.

internal import Foundation
internal import KeychainServices
internal import Valet

/// The Swift program that shares a keychain with the Objective-C programs.
@main
enum SwiftPeer {
    static func main() {
        do {
            try run()
        } catch {
            FileHandle.standardError.write(Data("SwiftPeer: \(error)\n".utf8))
            exit(1)
        }
    }

    private static func run() throws {
        switch CommandLine.arguments.dropFirst().first {
        case "write": try write()
        case "read": try read()
        case "foreign": try addForeignItems()
        case "set-passcode": try KeychainSession.current().setPasscode(passcode())
        case "unlock": try KeychainSession.current().unlock(passcode: passcode())
        case "lock": try KeychainSession.current().lock()
        case "forget": try KeychainSession.current().lock(includingAfterFirstUnlock: true)
        default: throw Refused("SwiftPeer write | read | foreign | set-passcode | unlock | lock | forget")
        }
    }

    /// The passcode from standard input.
    private static func passcode() throws -> Data {
        try FileHandle.standardInput.readToEnd() ?? Data()
    }

    /// The valets of the Objective-C examples, by their names there.
    private static let valets: [(name: String, valet: Valet)] = [
        ("basic", .valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)),
        ("explicit", .valet(withExplicitlySet: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)),
        (
            "App ID prefix",
            .sharedGroupValet(
                with: SharedGroupIdentifier(appIDPrefix: "AppID12345", nonEmptyGroup: "Druidia")!, accessibility: .whenUnlocked)
        ),
        (
            "application group",
            .sharedGroupValet(with: SharedGroupIdentifier(groupPrefix: "group", nonEmptyGroup: "Druidia")!, accessibility: .whenUnlocked)
        ),
        ("iCloud", .iCloudValet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)),
    ]
    private static let enclave = SecureEnclaveValet.valet(with: Identifier(nonEmpty: "Druidia")!, accessControl: .userPresence)
    private static let singlePrompt = SinglePromptSecureEnclaveValet.valet(
        with: Identifier(nonEmpty: "Druidia")!, accessControl: .userPresence)

    private static func write() throws {
        for (name, valet) in valets { try valet.setString("Swift: \(name)", forKey: "Swift") }
        try enclave.setString("Swift: Secure Enclave", forKey: "Swift")
        try singlePrompt.setString("Swift: single prompt", forKey: "Swift")
    }

    private static func read() throws {
        for (name, valet) in valets {
            try expect(valet.string(forKey: "Objective-C"), of: name)
            // In the order of adding and removing, it contains nothing else. The first also has the example's value.
            let others = try valet.allKeys().subtracting(["Swift", "Objective-C", "Skroob"])
            guard others.isEmpty else { throw Refused("\(name) has other keys, too") }
        }
        try expect(enclave.string(forKey: "Objective-C", withPrompt: "Read what Objective-C wrote"), of: "Secure Enclave")
        try expect(singlePrompt.string(forKey: "Objective-C", withPrompt: "Read what Objective-C wrote"), of: "single prompt")
    }

    private static func expect(_ text: String, of name: String) throws {
        guard text == "Objective-C: \(name)" else { throw Refused("\(name): \(text)") }
    }

    /// Items that current valets do not write, for migrations.
    private static func addForeignItems() throws {
        let always = "VAL_VALValet_initWithIdentifier:accessibility:_Legacy_"
        try add("Skroob", service: always + "AccessibleAlways", accessible: "dk")
        try add("Helmet", service: always + "AccessibleAlwaysThisDeviceOnly", accessible: "dku")
        try add(Data([0xFF, 0x00, 0x41]), service: "Key of bytes", accessible: "ak")
        try add("Lone Starr", service: "Labelled", accessible: "ak", ["labl": "Mercenary", "type": 7, "invi": true])
    }

    private static func add(_ account: Any, service: String, accessible: String, _ others: [String: Any] = [:]) throws {
        var item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword as String, kSecAttrService as String: service, kSecAttrAccount as String: account,
            kSecAttrAccessible as String: accessible, kSecValueData as String: Data("12345".utf8),
        ]
        item.merge(others) { _, other in other }
        let status = SecItemAdd(item as CFDictionary, nil)
        guard status == errSecSuccess else { throw Refused("\(service): \(status)") }
    }
}

/// A failed check.
struct Refused: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
