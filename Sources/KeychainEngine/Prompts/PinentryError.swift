// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The number behind `ERR`: a source in the upper half, a code in the lower.
///
/// Source: gpg-error.h (libgpg-error). An error of the system is 32768 and its place in that library's own alphabet of errors, which is
/// not errno.
package struct PinentryError: Hashable, Sendable {
    package let code: UInt32

    package init(number: UInt32) {
        code = number & 0xFFFF
    }

    /// `GPG_ERR_NOT_CONFIRMED`: the person did not repeat what they had typed.
    var isUnconfirmed: Bool { code == 114 }

    /// What became of the question.
    ///
    /// Without a terminal and a display the program's "canceled" is no person's. pinentry-tty calls it a timeout when the person types
    /// ^C: one that comes before half of its time is over is a cancellation.
    package func refusal(hasPerson: Bool, isEarly: Bool) -> PresenceRefusal {
        switch code {
        // GPG_ERR_CANCELED, GPG_ERR_FULLY_CANCELED, GPG_ERR_NOT_CONFIRMED, GPG_ERR_ASS_CANCELED
        case 99, 198, 114, 277: hasPerson ? .canceled : .nobodyToAsk("the pinentry program has neither a terminal nor a display")
        // GPG_ERR_TIMEOUT
        case 62: isEarly ? (hasPerson ? .canceled : .nobodyToAsk("the pinentry program waits for nobody")) : .timedOut
        // GPG_ERR_NO_PIN_ENTRY, GPG_ERR_MISSING_ENVVAR, ENOTTY, ENXIO, ENODEV, EIO, EBADF, and errno 25 as it is
        case 85, 303, 32_768 + 102, 32_768 + 104, 32_768 + 80, 32_768 + 49, 32_768 + 11, 32_768 + 25:
            .nobodyToAsk("the pinentry program finds no terminal and no display (error \(code))")
        default: .failed("the pinentry program answers error \(code)")
        }
    }
}
