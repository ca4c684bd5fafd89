// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

extension KeychainSession {
    /// When an unlocked keychain locks itself.
    public struct AutoLock: Hashable, Sendable {
        let value: KeychainCore.AutoLock

        init(_ value: KeychainCore.AutoLock) {
            self.value = value
        }

        /// After 15 minutes in which no item was used.
        public static let standard = AutoLock(.standard)

        /// Never by itself: only ``KeychainSession/lock(includingAfterFirstUnlock:)`` or a restart locks it.
        public static let never = AutoLock(.never)

        /// After a time in which no item was used.
        ///
        /// - Parameter seconds: At least 1; less counts as 1.
        /// - Returns: The rule.
        public static func after(seconds: Int) -> AutoLock {
            AutoLock(.after(seconds: UInt32(clamping: max(1, seconds))))
        }

        /// The seconds without use; nil for ``never``.
        public var seconds: Int? { value.seconds.map(Int.init) }
    }
}
