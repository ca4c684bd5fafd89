// SPDX-License-Identifier: Apache-2.0

/// What can be stored at all, told from the call and the caller alone: asked before a keychain is opened, or made.
extension Entitlements {
    /// Where a new item goes and how it is protected; throws for one that could not be stored.
    package func admit(_ request: AddRequest) throws(KeychainFailure) -> (group: String, control: AccessControl) {
        let group = try group(forNewItemNaming: request.attributes.text(.accessGroup))
        try request.itemClass.requirePassword()
        let control = request.accessControl ?? AccessControl(Self.defaultAccessibility(in: group))
        try requireStorable(control, isSynchronizable: request.attributes.flag(.synchronizable) ?? false)
        try requireNoToken(request.attributes)
        return (group, control)
    }

    func requireStorable(_ control: AccessControl, isSynchronizable: Bool) throws(KeychainFailure) {
        if isSynchronizable {
            try requireSynchronizationAllowed()
            guard !control.accessibility.isThisDeviceOnly else {
                throw KeychainFailure(.parameter, "an item that must stay on this device cannot be synchronizable")
            }
        }
        // With access control it is refused already where the dictionary is parsed; asked here for every other way.
        guard !isSynchronizable || control.isUnconstrained else {
            throw KeychainFailure(.parameter, "an item with access control cannot be synchronizable")
        }
        guard control.constraint?.isReleasable != false else {
            throw KeychainFailure.biometryNotAvailable()
        }
        guard !control.allowsPrivateKeyUsageOnly else {
            throw KeychainFailure(.parameter, "privateKeyUsage is for private keys: a password stored with it could never be read back")
        }
    }

    func requireNoToken(_ attributes: ItemAttributes) throws(KeychainFailure) {
        guard attributes.text(.tokenID)?.isEmpty ?? true else {
            throw KeychainFailure(.unimplemented, "items on a token cannot be stored")
        }
    }

    /// Apple gives its push service's group a class of its own; everything else starts as `ak`.
    private static func defaultAccessibility(in group: String) -> Accessibility {
        group == "com.apple.apsd" ? .alwaysThisDeviceOnly : .whenUnlocked
    }
}

extension ItemClass {
    func requirePassword() throws(KeychainFailure) {
        guard isPassword else {
            throw KeychainFailure(.unimplemented, "items of class '\(rawValue)' cannot be stored yet; passwords can")
        }
    }
}
