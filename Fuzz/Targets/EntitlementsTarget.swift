// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainCore

@testable internal import KeychainEngine

/// Entitlements files, and the information that Flatpak gives a program.
struct EntitlementsTarget: FuzzTarget {
    static let name = "entitlements"

    static func seeds() throws -> [[UInt8]] {
        let list: [String: any Sendable] = [
            "application-identifier": "T.app", "keychain-access-groups": ["T.shared", "T.other"],
            "com.apple.security.application-groups": "group.druidia", "com.apple.developer.on-demand-install-capable": true,
            "n": 7, "r": 0.5, "d": Date(timeIntervalSinceReferenceDate: 0), "b": Data([1, 2]), "a": [["k": ["v"]]],
        ]
        let xml = try PropertyListSerialization.data(fromPropertyList: list, format: .xml, options: 0)
        return [
            Array(xml), Array(String(decoding: xml, as: UTF8.self).data(using: .utf16) ?? Data()),
            Array("{ \"keychain-access-groups\" = (a, \"b\\U00e9\"); x = <0a0b>; /* c */ }".utf8),
            Array("<plist><dict><key>keychain-access-groups</key><array><string>&#x41;<![CDATA[b]]></string></array></dict></plist>".utf8),
            Array("<plist><dict><key>CF$UID</key><integer>1</integer></dict></plist>".utf8),
            Array("[Application]\nname=org.example.App\n".utf8),
        ]
    }

    func run(_ input: [UInt8]) {
        if input.first == UInt8(ascii: "[") {
            let name = CallerEntitlements.flatpakApplicationName(in: String(decoding: input, as: UTF8.self))
            expect(name?.contains(where: \.isNewline) != true, "a name has more than one line")
            return
        }
        let entitlements = attempt(expecting: Self.isAnswer) { () throws(KeychainFailure) in
            try EntitlementsFile.entitlements(in: Data(input), ofFile: "FILE", defaultIdentifier: "program")
        }
        guard let entitlements else { return }
        expect(!entitlements.accessGroups.contains(""), "there is a group without a name")
        expect(entitlements.accessGroups.allSatisfy(entitlements.canRead), "a group of its own cannot be read")
        expect(
            entitlements.accessGroups.first == entitlements.defaultGroup || entitlements.defaultGroup == nil, "the default is not the first"
        )
    }

    private static func isAnswer(_ failure: KeychainFailure) -> Bool {
        failure.status == .missingEntitlement && failure.reason.contains("FILE")
    }
}
