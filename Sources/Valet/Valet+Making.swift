// SPDX-License-Identifier: Apache-2.0

extension Valet {
    /// A valet for this program on this device.
    ///
    /// - Parameters:
    ///   - identifier: Names the values, see ``Identifier``.
    ///   - accessibility: When they can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func valet(with identifier: Identifier, accessibility: Accessibility) -> Valet {
        live(.identifier(identifier), kind: .local, accessibility: accessibility)
    }

    /// A valet whose values the other devices of the same person also have.
    ///
    /// Where there is no iCloud Keychain, values are stored and read on this device alone.
    ///
    /// - Parameters:
    ///   - identifier: Names the values, see ``Identifier``.
    ///   - accessibility: When they can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func iCloudValet(with identifier: Identifier, accessibility: CloudAccessibility) -> Valet {
        live(.identifier(identifier), kind: .iCloud, accessibility: accessibility.accessibility)
    }

    /// A valet shared by all programs that have an access group.
    ///
    /// - Parameters:
    ///   - groupIdentifier: The access group; the program's entitlements must list it.
    ///   - identifier: Separates several valets of one group.
    ///   - accessibility: When the values can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func sharedGroupValet(
        with groupIdentifier: SharedGroupIdentifier, identifier: Identifier? = nil, accessibility: Accessibility
    ) -> Valet {
        live(.sharedGroup(groupIdentifier, identifier), kind: .local, accessibility: accessibility)
    }

    /// A valet shared by all programs that have an access group, whose values the other devices of the same person also have.
    ///
    /// - Parameters:
    ///   - groupIdentifier: The access group; the program's entitlements must list it.
    ///   - identifier: Separates several valets of one group.
    ///   - accessibility: When the values can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func iCloudSharedGroupValet(
        with groupIdentifier: SharedGroupIdentifier, identifier: Identifier? = nil, accessibility: CloudAccessibility
    ) -> Valet {
        live(.sharedGroup(groupIdentifier, identifier), kind: .iCloud, accessibility: accessibility.accessibility)
    }

    /// A valet whose identifier is the service of its items, word for word: for names that people are shown.
    ///
    /// Nothing then keeps it apart from other valets and programs with the same identifier, so the identifier must be
    /// unique. Two such valets that differ only in their accessibility do not see each other's values and cannot both
    /// have a value for one key; ``migrateObjects(from:removeOnCompletion:)`` moves values from one to the other.
    ///
    /// - Parameters:
    ///   - identifier: The service.
    ///   - accessibility: When the values can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func valet(withExplicitlySet identifier: Identifier, accessibility: Accessibility) -> Valet {
        live(.explicitIdentifier(identifier), kind: .local, accessibility: accessibility)
    }

    /// An iCloud valet whose identifier is the service of its items, word for word.
    ///
    /// See ``valet(withExplicitlySet:accessibility:)``.
    ///
    /// - Parameters:
    ///   - identifier: The service.
    ///   - accessibility: When the values can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func iCloudValet(withExplicitlySet identifier: Identifier, accessibility: CloudAccessibility) -> Valet {
        live(.explicitIdentifier(identifier), kind: .iCloud, accessibility: accessibility.accessibility)
    }

    /// A shared group valet whose group, without its prefix, is the service of its items, word for word.
    ///
    /// See ``valet(withExplicitlySet:accessibility:)``.
    ///
    /// - Parameters:
    ///   - identifier: The access group; the program's entitlements must list it.
    ///   - accessibility: When the values can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func sharedGroupValet(
        withExplicitlySet identifier: SharedGroupIdentifier, accessibility: Accessibility
    ) -> Valet {
        live(.explicitSharedGroup(identifier), kind: .local, accessibility: accessibility)
    }

    /// An iCloud shared group valet whose group, without its prefix, is the service of its items, word for word.
    ///
    /// See ``valet(withExplicitlySet:accessibility:)``.
    ///
    /// - Parameters:
    ///   - identifier: The access group; the program's entitlements must list it.
    ///   - accessibility: When the values can be read and written.
    /// - Returns: The valet; the same arguments give the same instance as long as somebody holds it.
    public class func iCloudSharedGroupValet(
        withExplicitlySet identifier: SharedGroupIdentifier, accessibility: CloudAccessibility
    ) -> Valet {
        live(.explicitSharedGroup(identifier), kind: .iCloud, accessibility: accessibility.accessibility)
    }

    private static let instances = InstanceRegistry<InstanceKey, Valet>()

    private static func live(_ name: SandboxName, kind: ValetKind, accessibility: Accessibility) -> Valet {
        let sandbox = Sandbox(name: name, kind: kind, protection: accessibility)
        return instances.instance(for: InstanceKey(sandbox, name)) {
            Valet(name: name, kind: kind, accessibility: accessibility, sandbox: sandbox)
        }
    }
}
