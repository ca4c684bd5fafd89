// SPDX-License-Identifier: Apache-2.0

/// A request that may satisfy access control.
package protocol AuthenticatedRequest: Sendable {
    var authentication: Authentication { get set }
}

extension AddRequest: AuthenticatedRequest {}
extension MatchRequest: AuthenticatedRequest {}
extension UpdateRequest: AuthenticatedRequest {}
extension DeleteRequest: AuthenticatedRequest {}
