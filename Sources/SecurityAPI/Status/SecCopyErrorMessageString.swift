// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are Apple's.

/// What a status means, as a sentence for a person to read.
///
/// - Parameters:
///   - status: A status of a Keychain Services function.
///   - reserved: Always nil.
/// - Returns: The sentence; for a status that has none, the word `OSStatus` and the number.
public func SecCopyErrorMessageString(_ status: OSStatus, _ reserved: UnsafeMutableRawPointer?) -> CFString? {
    statusMessages[status] ?? "OSStatus \(status)"
}
