// SPDX-License-Identifier: Apache-2.0
internal import KeychainServices

/// The part of the keychain that one valet sees.
///
/// Two valets with the same sandbox see the same items.
struct Sandbox: Hashable, Sendable {
    let service: ExactString
    /// Nil: the program's own group for new items, and every group it may read for searches.
    let accessGroup: ExactString?
    let accessibilityAttribute: String
    let isSynchronizable: Bool

    init(name: SandboxName, kind: ValetKind, protection: some ItemProtection) {
        service = ExactString(name.service(kind: kind, protection: protection))
        accessGroup = name.accessGroup.map(ExactString.init)
        accessibilityAttribute = protection.secAccessibilityAttribute
        isSynchronizable = kind.isSynchronizable
    }

    /// Finds every item of the sandbox, and holds all attributes that a new one needs beside its account.
    ///
    /// The accessibility is part of it: explicitly named valets share a service, and must not see each other's items.
    var items: ItemQuery {
        var query = ItemQuery([
            kSecClass as String: kSecClassGenericPassword as String,
            kSecAttrService as String: service.value,
            kSecAttrAccessible as String: accessibilityAttribute,
            kSecUseDataProtectionKeychain as String: true,
        ])
        if let accessGroup { query = query.with([kSecAttrAccessGroup as String: accessGroup.value]) }
        if isSynchronizable { query = query.with([kSecAttrSynchronizable as String: true]) }
        return query
    }
}
