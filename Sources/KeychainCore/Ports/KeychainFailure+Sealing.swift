// SPDX-License-Identifier: Apache-2.0

extension KeychainFailure {
    /// What a chip's refusal means for a keychain.
    ///
    /// The chip says nothing about the keychain's file: whatever this is, nothing there was changed.
    package init(_ failure: SealingFailure, file: StaticString = #fileID, line: UInt = #line) {
        switch failure {
        case .wrongAuthorization:
            self.init(.authFailed, "the passcode is wrong; the TPM has counted it", file: file, line: line)
        case .lockedOut(let seconds):
            let time = seconds.map { "in \($0) s" } ?? "later"
            self.init(
                .authFailed, "too many wrong passcodes: try again \(time)", refusal: .lockedOut(seconds: seconds), file: file, line: line)
        case .foreignObject:
            self.init(
                .notAvailable,
                "the TPM cannot open what was sealed for this keychain: it was cleared, or this is another one. Nothing was deleted; the recovery key, if one was made, restores access",
                remedy: .useRecoveryKey, file: file, line: line)
        case .unavailable(let what):
            self.init(
                .notAvailable,
                "this keychain needs a TPM, and it is absent or cannot be reached: \(what). Nothing was deleted; without that TPM the recovery key, if one was made, restores access",
                remedy: .reachTPM, file: file, line: line)
        case .timedOut:
            self.init(
                .notAvailable, "the TPM did not answer in time, or is busy with others; nothing was changed", remedy: .reachTPM,
                file: file, line: line)
        case .failed(let what):
            self.init(.notAvailable, "the TPM failed: \(what); nothing was changed", remedy: .reachTPM, file: file, line: line)
        }
    }
}
