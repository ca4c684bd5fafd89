// SPDX-License-Identifier: Apache-2.0

internal import KeychainCore

extension KeychainSession {
    /// The states that the keychain goes through, whoever changes them: first the present one, then each that differs.
    ///
    /// An application waits for its items with it:
    ///
    ///     for try await state in try KeychainSession.current().stateChanges where state == .unlocked { break }
    ///
    /// A change is seen within half a second. A state that lasts less can be missed. Ends when the task is cancelled; throws
    /// ``KeychainSessionError`` when the keychain cannot be asked any more.
    public var stateChanges: StateChanges { StateChanges(session: self) }

    /// See ``KeychainSession/stateChanges``.
    public struct StateChanges: AsyncSequence, Sendable {
        /// A state of the keychain.
        public typealias Element = State
        /// Why the keychain could not be asked.
        public typealias Failure = any Error

        let session: KeychainSession

        /// Begins with the present state.
        ///
        /// - Returns: The iterator.
        public func makeAsyncIterator() -> Iterator { Iterator(session: session) }

        /// Asks the keychain until its state is another one.
        public struct Iterator: AsyncIteratorProtocol {
            private static let interval = Duration.milliseconds(250)

            private let session: KeychainSession
            private var last: State?

            init(session: KeychainSession) {
                self.session = session
            }

            /// The next state; nil when the task was cancelled.
            ///
            /// - Throws: ``KeychainSessionError`` when the keychain cannot be asked.
            public mutating func next() async throws -> State? {
                while !Task.isCancelled {
                    let state = try session.state
                    if state != last {
                        last = state
                        return state
                    }
                    try? await Task.sleep(for: Self.interval)
                }
                return nil
            }
        }
    }
}
