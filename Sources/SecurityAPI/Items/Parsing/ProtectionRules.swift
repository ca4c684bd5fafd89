// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

/// Which protections one dictionary may name together.
enum ProtectionRules {
    /// An object made by `SecAccessControlCreateWithFlags` has a protection class of its own, so a second one is refused.
    ///
    /// The object among the attributes of an item without constraints says nothing beyond the class, and may stand beside it.
    static func check(_ accessibility: Accessibility?, _ accessControl: SecAccessControl?) throws(KeychainFailure) {
        guard accessibility == nil || accessControl?.carriesConstraints != true else {
            throw KeychainFailure(.parameter, "kSecAttrAccessible and kSecAttrAccessControl exclude each other")
        }
    }

    /// What never leaves the device, or asks for a person who is there, cannot be synchronizable.
    static func checkSynchronizable(_ accessibility: Accessibility?, _ accessControl: SecAccessControl?) throws(KeychainFailure) {
        guard accessControl?.carriesConstraints != true else {
            throw KeychainFailure(.parameter, "kSecAttrAccessControl and kSecAttrSynchronizable exclude each other")
        }
        guard let accessibility = accessibility ?? accessControl?.accessControl.accessibility else { return }
        guard !accessibility.isThisDeviceOnly else {
            throw KeychainFailure(.parameter, "an item for this device only cannot be synchronizable")
        }
    }

    /// The protection the two keys name, nil if neither is there.
    static func protection(_ accessibility: Accessibility?, _ accessControl: SecAccessControl?) -> AccessControl? {
        accessibility.map { AccessControl($0) } ?? accessControl?.accessControl
    }
}
