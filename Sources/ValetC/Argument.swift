// SPDX-License-Identifier: Apache-2.0
internal import CValet
internal import Valet

/// What C says about a valet to create.
enum Argument {
    static func identifier(_ text: UnsafePointer<CChar>?, _ length: Int) throws(CallFailure) -> Identifier {
        // The header says what the pointer must be; so below.
        guard let identifier = try unsafe optionalIdentifier(text, length) else { throw CallFailure(valet_error_empty_identifier) }
        return identifier
    }

    static func optionalIdentifier(_ text: UnsafePointer<CChar>?, _ length: Int) throws(CallFailure) -> Identifier? {
        Identifier(nonEmpty: try unsafe Input.text(text, length))
    }

    static func group(
        _ prefixKind: valet_group_prefix, _ prefix: UnsafePointer<CChar>?, _ prefixLength: Int, _ group: UnsafePointer<CChar>?,
        _ groupLength: Int
    ) throws(CallFailure) -> SharedGroupIdentifier {
        let prefix = try unsafe Input.text(prefix, prefixLength)
        let group = try unsafe Input.text(group, groupLength)
        guard !group.isEmpty else { throw CallFailure(valet_error_empty_identifier) }
        switch Int(prefixKind) {
        case valet_group_prefix_app_id:
            guard let shared = SharedGroupIdentifier(appIDPrefix: prefix, nonEmptyGroup: group) else {
                throw CallFailure(valet_error_empty_identifier)
            }
            return shared
        case valet_group_prefix_application_group:
            guard let shared = SharedGroupIdentifier(groupPrefix: prefix, nonEmptyGroup: group) else {
                throw CallFailure(valet_error_invalid_group_prefix)
            }
            return shared
        default: throw CallFailure(valet_error_unknown_constant)
        }
    }

    // The numbers of C are the raw values of Swift.

    static func accessibility(_ number: valet_accessibility) throws(CallFailure) -> Accessibility {
        guard let accessibility = Accessibility(rawValue: Int(number)) else { throw CallFailure(valet_error_unknown_constant) }
        return accessibility
    }

    static func cloudAccessibility(_ number: valet_cloud_accessibility) throws(CallFailure) -> CloudAccessibility {
        guard let accessibility = CloudAccessibility(rawValue: Int(number)) else { throw CallFailure(valet_error_unknown_constant) }
        return accessibility
    }

    static func accessControl(_ number: valet_access_control) throws(CallFailure) -> SecureEnclaveAccessControl {
        guard let control = SecureEnclaveAccessControl(rawValue: Int(number)) else { throw CallFailure(valet_error_unknown_constant) }
        return control
    }
}
