// SPDX-License-Identifier: Apache-2.0
internal import Foundation
package import KeychainCore

extension LocalKeychain: KeychainAuthenticating {
    package func requireAuthenticable(_ constraint: AccessControl.Constraint) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in try access.requireAuthenticable(constraint) }
    }

    package func authenticate(
        _ constraint: AccessControl.Constraint, of accessibility: Accessibility?, _ authentication: Authentication
    ) throws(KeychainFailure) {
        try naming { () throws(KeychainFailure) in try access.authenticate(constraint, of: accessibility, authentication) }
    }

    /// What the person is told is asking.
    static var pathOfThisProgram: String {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments.first ?? "a program"
    }
}

extension KeychainConfiguration {
    func prompting(requester: String) -> Prompting {
        Prompting(
            verifier: verifier, requester: requester,
            timeoutSeconds: promptTimeoutSeconds)
    }
}
