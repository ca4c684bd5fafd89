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
    /// What a person must do to read the items; nil: nothing.
    let accessControl: SecureEnclaveAccessControl?

    init(name: SandboxName, kind: ValetKind, protection: some ItemProtection) {
        service = ExactString(name.service(kind: kind, protection: protection))
        accessGroup = name.accessGroup.map(ExactString.init)
        accessibilityAttribute = protection.secAccessibilityAttribute
        isSynchronizable = kind.isSynchronizable
        accessControl = protection.enclaveAccessControl
    }

    /// Finds every item of the sandbox.
    ///
    /// The accessibility is part of it: explicitly named valets share a service, and must not see each other's items. Where a person
    /// has to release items the service is never shared, and the access control of a new one says the accessibility.
    var items: ItemQuery {
        var query = ItemQuery([
            kSecClass as String: kSecClassGenericPassword as String,
            kSecAttrService as String: service.value,
            kSecUseDataProtectionKeychain as String: true,
        ])
        if accessControl == nil { query = query.with([kSecAttrAccessible as String: accessibilityAttribute]) }
        if let accessGroup { query = query.with([kSecAttrAccessGroup as String: accessGroup.value]) }
        if isSynchronizable { query = query.with([kSecAttrSynchronizable as String: true]) }
        return query
    }
}
