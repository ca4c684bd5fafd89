// SPDX-License-Identifier: Apache-2.0

/// What the engine makes of the files that a power cut or a failing disk has left.
package enum FoundKeychain: Sendable {
    /// None, and one could be made.
    case absent
    /// Whole, and something could be stored in it.
    case world(KeychainWorld)
    /// It could not be opened, read or written, or is not sound; with the reason.
    case unusable(String)
}
