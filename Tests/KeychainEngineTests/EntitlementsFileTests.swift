// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("An entitlements file")
struct EntitlementsFileTests {
    static func write(_ entitlements: [String: any Sendable], to path: String) throws {
        let data = try PropertyListSerialization.data(fromPropertyList: entitlements, format: .xml, options: 0)
        try data.write(to: URL(filePath: path))
    }

    private func read(_ entitlements: [String: any Sendable]) throws -> Entitlements {
        try withTemporaryDirectory { directory in
            let path = directory + "/test.entitlements"
            try Self.write(entitlements, to: path)
            return try EntitlementsFile.entitlements(atPath: path, defaultIdentifier: "program")
        }
    }

    @Test("Groups are in Apple's order, and the first is the default")
    func order() throws {
        let entitlements = try read([
            "application-identifier": "T.app",
            "keychain-access-groups": ["T.shared", "T.other"],
            "com.apple.developer.associated-application-identifier": ["T.associated"],
            "com.apple.security.application-groups": ["group.druidia"],
        ])
        #expect(entitlements.applicationIdentifier == "T.app")
        #expect(entitlements.accessGroups == ["T.shared", "T.other", "T.associated", "T.app", "group.druidia"])
        #expect(entitlements.defaultGroup == "T.shared")
    }

    @Test("macOS' name of the application identifier is understood; the other one comes first")
    func identifierOfMac() throws {
        #expect(try read(["com.apple.application-identifier": "T.mac"]).applicationIdentifier == "T.mac")
        let both = try read(["com.apple.application-identifier": "T.mac", "application-identifier": "T.other"])
        #expect(both.applicationIdentifier == "T.other")
    }

    @Test("Without an application identifier the program's name stands for it")
    func defaultIdentifier() throws {
        let entitlements = try read(["keychain-access-groups": ["T.shared"]])
        #expect(entitlements.applicationIdentifier == "program")
        #expect(entitlements.accessGroups == ["T.shared", "program"])
    }

    @Test("One string stands for a list of one")
    func singleString() throws {
        #expect(try read(["keychain-access-groups": "T.shared"]).accessGroups == ["T.shared", "program"])
    }

    @Test("A group listed twice counts once, an empty one not at all")
    func repeatedGroups() throws {
        #expect(try read(["keychain-access-groups": ["T.shared", "", "T.shared", "program"]]).accessGroups == ["T.shared", "program"])
    }

    @Test("An app clip is recognised", arguments: [true, false])
    func appClip(_ isClip: Bool) throws {
        #expect(try read(["com.apple.developer.on-demand-install-capable": isClip]).isAppClip == isClip)
    }

    @Test(
        "A value of a wrong type is an error that names file and entry",
        arguments: [
            "application-identifier", "com.apple.application-identifier", "keychain-access-groups",
            "com.apple.developer.associated-application-identifier", "com.apple.security.application-groups",
        ])
    func wrongType(_ entry: String) {
        let failure = #expect(throws: KeychainFailure.self) { try read([entry: 7]) }
        #expect(failure?.status == .missingEntitlement)
        #expect(failure?.reason.contains("'\(entry)'") == true)
        #expect(failure?.reason.contains("test.entitlements") == true)
    }

    @Test("A list with something else than strings is an error")
    func mixedList() {
        let mixed: [any Sendable] = ["T.shared", 7]
        #expect(throws: KeychainFailure(.missingEntitlement, "")) { try read(["keychain-access-groups": mixed]) }
    }

    @Test(
        "What is not a property list of a dictionary is an error that names the file",
        arguments: [Data(), Data("{".utf8), Data("<plist><array/></plist>".utf8), Data([0xff, 0xfe, 0x00]), Data(count: (1 << 20) + 1)])
    func notADictionary(_ content: Data) throws {
        try expectRefused(content)
    }

    /// The error names the file, and what more is given.
    private func expectRefused(_ content: Data, naming reason: String = "") throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/test.entitlements"
            try content.write(to: URL(filePath: path))
            let failure = #expect(throws: KeychainFailure.self) {
                try EntitlementsFile.entitlements(atPath: path, defaultIdentifier: "program")
            }
            #expect(failure?.status == .missingEntitlement)
            #expect(failure?.reason.contains(path) == true)
            #expect(reason.isEmpty || failure?.reason.contains(reason) == true)
        }
    }

    @Test("A binary property list is refused with the way out, and not read: a damaged one could end the program or keep it busy for ever")
    func binary() throws {
        let whole = try PropertyListSerialization.data(
            fromPropertyList: ["keychain-access-groups": ["T.shared"]], format: .binary, options: 0)
        for content in [whole, whole.dropLast(40), Data("bplist".utf8)] { try expectRefused(content, naming: "XML") }
    }

    @Test("A pipe in the place of the file is an error, and is not waited for")
    func pipe() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/test.entitlements"
            // The path is copied by the call.
            #expect(unsafe mkfifo(path, 0o600) == 0)
            #expect(throws: KeychainFailure(.missingEntitlement, "")) {
                try EntitlementsFile.entitlements(atPath: path, defaultIdentifier: "program")
            }
        }
    }
}
