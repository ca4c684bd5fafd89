// SPDX-License-Identifier: Apache-2.0

// Initializers that do not exist, for the message of the compiler: without them, `Valet(identifier:)` fails with "'Valet' initializer is
// inaccessible". No call of them compiles, so their bodies never run.

extension Valet {
    /// Not available: ``valet(with:accessibility:)`` and the other class methods create valets.
    @available(*, unavailable, message: "create a valet with Valet.valet(with:accessibility:) or another class method")
    public convenience init() {
        let name = ValetName.identifier("unavailable")
        let namespace = KeychainNamespace(name: name, kind: .local, protection: Accessibility.whenUnlocked)
        self.init(name: name, kind: .local, accessibility: .whenUnlocked, namespace: namespace)
    }

    /// Not available: ``valet(with:accessibility:)`` and the other class methods create valets.
    @available(*, unavailable, message: "create a valet with Valet.valet(with:accessibility:) or another class method")
    public convenience init<Name>(_ identifier: Name) { self.init() }

    /// Not available: ``valet(with:accessibility:)`` and the other class methods create valets.
    @available(*, unavailable, message: "create a valet with Valet.valet(with:accessibility:) or another class method")
    public convenience init<Name>(identifier: Name, accessibility: Accessibility = .whenUnlocked) { self.init() }

    /// Not available: ``valet(with:accessibility:)`` and the other class methods create valets.
    @available(*, unavailable, message: "create a valet with Valet.valet(with:accessibility:) or another class method")
    public convenience init<Name>(with identifier: Name, accessibility: Accessibility = .whenUnlocked) { self.init() }

    /// Not available: a name that is not written in the source becomes an identifier with ``Identifier/init(nonEmpty:)``.
    @available(*, unavailable, message: "a String becomes an identifier with Identifier(nonEmpty:), which is nil if it is empty")
    public class func valet(with identifier: String, accessibility: Accessibility) -> Valet { Valet() }
}

extension SecureEnclaveValet {
    /// Not available: ``valet(with:accessControl:)`` and the other class methods create valets.
    @available(*, unavailable, message: "create a valet with SecureEnclaveValet.valet(with:accessControl:)")
    public convenience init() {
        let name = ValetName.identifier("unavailable")
        let namespace = KeychainNamespace(name: name, kind: .secureEnclave, protection: SecureEnclaveProtection(.userPresence))
        self.init(name: name, accessControl: .userPresence, namespace: namespace)
    }

    /// Not available: ``valet(with:accessControl:)`` and the other class methods create valets.
    @available(*, unavailable, message: "create a valet with SecureEnclaveValet.valet(with:accessControl:)")
    public convenience init<Name>(identifier: Name, accessControl: SecureEnclaveAccessControl = .userPresence) { self.init() }
}

@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension SinglePromptSecureEnclaveValet {
    /// Not available: ``valet(with:accessControl:)`` and the other class methods create valets.
    @available(*, unavailable, message: "create a valet with SinglePromptSecureEnclaveValet.valet(with:accessControl:)")
    public convenience init() {
        let name = ValetName.identifier("unavailable")
        let namespace = KeychainNamespace(name: name, kind: .singlePrompt, protection: SecureEnclaveProtection(.userPresence))
        self.init(name: name, accessControl: .userPresence, namespace: namespace)
    }

    /// Not available: ``valet(with:accessControl:)`` and the other class methods create valets.
    @available(*, unavailable, message: "create a valet with SinglePromptSecureEnclaveValet.valet(with:accessControl:)")
    public convenience init<Name>(identifier: Name, accessControl: SecureEnclaveAccessControl = .userPresence) { self.init() }
}
