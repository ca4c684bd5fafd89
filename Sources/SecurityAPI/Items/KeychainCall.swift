// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore
internal import Logging

/// Runs one SecItem call: turns a failure into its status and logs why.
enum KeychainCall {
    private static let logger = Logger(label: "keychain")

    static func run(_ body: () throws(KeychainFailure) -> Void) -> OSStatus {
        do throws(KeychainFailure) {
            try body()
            return errSecSuccess
        } catch {
            log(error)
            return error.status.rawValue
        }
    }

    /// The answers every program expects at times are not worth a line; a mistake in the call, or a keychain that cannot be used, is.
    private static func log(_ failure: KeychainFailure) {
        switch failure.status {
        case .itemNotFound, .duplicateItem, .userCanceled: logger.debug("\(failure)")
        case .parameter, .noSuchAttribute, .noSuchClass, .missingEntitlement, .restrictedAPI, .unimplemented: logger.error("\(failure)")
        default: logger.warning("\(failure)")
        }
    }
}
