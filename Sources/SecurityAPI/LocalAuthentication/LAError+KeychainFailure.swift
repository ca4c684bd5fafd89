// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import KeychainCore

extension LAError {
    /// A failure of the keychain as LocalAuthentication reports one.
    ///
    /// What has no code of its own is `authenticationFailed`, and its description says why. The failure itself is the underlying error.
    init(_ failure: KeychainFailure) {
        var userInfo: [String: Any] = [NSUnderlyingErrorKey: NSError(failure)]
        let code = Code(failure)
        if code == nil { userInfo[NSLocalizedDescriptionKey] = failure.reason }
        self.init(code ?? .authenticationFailed, userInfo: userInfo)
    }

    /// An error of the caller's making: `authenticationFailed` with a description of what is wrong.
    init(mistake: String) {
        self.init(.authenticationFailed, userInfo: [NSLocalizedDescriptionKey: mistake])
    }
}

extension LAError.Code {
    fileprivate init?(_ failure: KeychainFailure) {
        switch (failure.refusal, failure.status) {
        case (.passcodeNotSet, _): self = .passcodeNotSet
        case (.wrong, _): self = .authenticationFailed
        case (.lockedOut, _): self = .biometryLockout
        case (.timedOut, _): self = .systemCancel
        case (.biometryNotAvailable, _): self = .biometryNotAvailable
        case (.notInteractive, _): self = .notInteractive
        case (.invalidContext, _): self = .invalidContext
        case (nil, .userCanceled): self = .userCancel
        case (nil, .interactionNotAllowed): self = .notInteractive
        case (nil, _): return nil
        }
    }
}
