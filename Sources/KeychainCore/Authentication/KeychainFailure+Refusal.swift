// SPDX-License-Identifier: Apache-2.0

/// What is refused before anybody is asked.
extension KeychainFailure {
    /// Without a passcode nobody can prove to be there.
    package static func passcodeNotSet(file: StaticString = #fileID, line: UInt = #line) -> KeychainFailure {
        KeychainFailure(
            .authFailed, "no passcode is set, and without one nobody can prove to be there", refusal: .passcodeNotSet, file: file,
            line: line)
    }

    /// What nobody here could ever satisfy.
    package static func biometryNotAvailable(file: StaticString = #fileID, line: UInt = #line) -> KeychainFailure {
        KeychainFailure(
            .authFailed, "biometry and companions release no key here: an item that needs one could never be read",
            refusal: .biometryNotAvailable, file: file, line: line)
    }
}
