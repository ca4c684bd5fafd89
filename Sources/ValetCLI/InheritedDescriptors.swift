// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The file descriptors that whoever started the command has opened for it.
///
/// A number that an option names may by then be a file of ours, the keychain even: that must not be read as a passcode.
enum InheritedDescriptors {
    /// Called first, before anything is opened.
    static func note() { _ = noted }

    static func contains(_ descriptor: Int32) -> Bool {
        // The system gives the lowest number that is free, so a higher one than these is none of ours.
        descriptor < limit ? noted.contains(descriptor) : isOpen(descriptor)
    }

    private static let limit: Int32 = 256
    private static let noted = Set((0..<limit).filter(isOpen))

    private static func isOpen(_ descriptor: Int32) -> Bool { fcntl(descriptor, F_GETFD) >= 0 }
}
