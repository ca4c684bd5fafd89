// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import KeychainCore

/// Why the keychain's lock did not do what was asked.
public struct KeychainSessionError: Error, Hashable, Sendable, CustomStringConvertible, LocalizedError {
    /// One of the status codes of Keychain Services, such as `errSecAuthFailed`.
    public let status: OSStatus
    /// What is wrong, for people; never a secret.
    public let description: String

    /// The same as ``description``.
    public var errorDescription: String? { description }

    init(_ failure: KeychainFailure) {
        status = failure.status.rawValue
        description = failure.reason
    }

    static func wrapping<Result>(
        _ body: () throws(KeychainFailure) -> Result
    ) throws(KeychainSessionError) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            throw KeychainSessionError(error)
        }
    }
}
