// SPDX-License-Identifier: Apache-2.0
import KeychainCore

/// What to do when a person could not be asked, or could not show to be the right one.
extension CommandFailure {
    static let noBiometry = CommandFailure(
        .unavailable, "nothing here recognises a finger or a face, so such an item could never be released",
        advice: "Use --secure-enclave user-presence or device-passcode.")

    init(_ failure: KeychainFailure, refusal: AuthenticationRefusal) {
        switch refusal {
        case .passcodeNotSet:
            self.init(
                .unavailable, failure.reason,
                advice: """
                    Such items need one: set it with `valet passcode set`, or choose another --accessibility, without --secure-enclave.
                    """)
        case .wrong:
            self.init(.unavailable, failure.reason, advice: "Nothing was read or changed. Run the command again with the right one.")
        case .lockedOut(let seconds):
            self.init(
                .unavailable, failure.reason,
                advice: seconds.map { "Try again in \($0) s." } ?? "Try again later.")
        case .timedOut:
            self.init(
                .unavailable, failure.reason, advice: "Run the command again to be asked anew, or give the passcode with --passcode-fd.")
        case .biometryNotAvailable:
            self = .noBiometry
        case .notInteractive:
            self.init(
                .unavailable, failure.reason, advice: "Run the command on a terminal, or give the passcode with --passcode-fd.")
        case .invalidContext:
            self.init(.unavailable, failure.reason, advice: "Run the command again.")
        }
    }
}
