// SPDX-License-Identifier: Apache-2.0

@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension SinglePromptSecureEnclaveValet {
    /// A valet for this program.
    ///
    /// - Parameters:
    ///   - identifier: Names the values, see ``Identifier``.
    ///   - accessControl: What a person must do before a value can be read.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func valet(with identifier: Identifier, accessControl: SecureEnclaveAccessControl) -> SinglePromptSecureEnclaveValet {
        live(.identifier(identifier), accessControl)
    }

    /// A valet shared by all programs that have an access group.
    ///
    /// - Parameters:
    ///   - groupIdentifier: The access group; the program's entitlements must list it.
    ///   - identifier: Separates several valets of one group.
    ///   - accessControl: What a person must do before a value can be read.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func sharedGroupValet(
        with groupIdentifier: SharedGroupIdentifier, identifier: Identifier? = nil, accessControl: SecureEnclaveAccessControl
    ) -> SinglePromptSecureEnclaveValet {
        live(.sharedGroup(groupIdentifier, identifier), accessControl)
    }

    private static let instances = InstanceRegistry<InstanceKey, SinglePromptSecureEnclaveValet>()

    private static func live(_ name: SandboxName, _ accessControl: SecureEnclaveAccessControl) -> SinglePromptSecureEnclaveValet {
        let sandbox = Sandbox(name: name, kind: .singlePrompt, protection: EnclaveProtection(accessControl))
        return instances.instance(for: InstanceKey(sandbox, name)) {
            SinglePromptSecureEnclaveValet(name: name, accessControl: accessControl, sandbox: sandbox)
        }
    }
}
