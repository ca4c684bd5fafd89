// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore

extension InMemoryKeychain {
    /// What a person was asked.
    public struct Question: Hashable, Sendable {
        /// What was to be typed.
        public enum Secret: Hashable, Sendable {
            /// The keychain's passcode.
            case passcode
            /// The program's own password, of items that exist.
            case applicationPassword
            /// The program's own password, chosen for a new item.
            case newApplicationPassword
        }

        /// What was to be typed.
        public let secret: Secret
        /// Who asked: here the application identifier of the program under test.
        public let requester: String
        /// What for, in the keychain's words.
        public let purpose: String
        /// What for, in the program's own words (`kSecUseOperationPrompt`, `localizedReason`); nil when it gave none.
        public let reason: String?
        /// The program's word for the button that cancels (`localizedCancelTitle`); nil: the usual one.
        public let cancelTitle: String?
        /// How often more it could be tried; nil at the first attempt.
        public let triesLeft: Int?

        init(_ question: PresenceQuestion) {
            secret =
                switch question.secret {
                case .passcode: .passcode
                case .applicationPassword: .applicationPassword
                case .newApplicationPassword: .newApplicationPassword
                }
            requester = question.requester
            purpose = question.purpose
            reason = question.reason
            cancelTitle = question.cancelTitle
            triesLeft = question.triesLeft
        }
    }
}
#endif
