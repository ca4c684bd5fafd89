// SPDX-License-Identifier: Apache-2.0

/// What the command answers to whoever started it.
///
/// Documented in `valet help`: never renumber.
enum ExitStatus: Int32 {
    case done = 0
    case notFound = 1
    case usage = 2
    /// Locked or unavailable: the keychain could not be asked, or what it answered could not be written out.
    case unavailable = 3
    case damaged = 4
    case alreadyThere = 5

    // What a shell answers when it cannot start a command; `valet run` stands in its place.
    case notExecutable = 126
    case commandNotFound = 127
}
