// SPDX-License-Identifier: Apache-2.0

/// What the person is asked for.
package enum AuthenticatedAction: Hashable, Sendable {
    case read, add, change, delete, evaluate

    /// Goes on after the name of the program and "wants to".
    var purpose: String {
        switch self {
        case .read: "read an item that you protected"
        case .add: "store an item that a password protects"
        case .change: "change an item that you protected"
        case .delete: "delete an item that you protected"
        case .evaluate: "make sure that it is you"
        }
    }
}
