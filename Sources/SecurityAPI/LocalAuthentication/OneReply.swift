// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Waits for the reply of a call that takes a closure.
enum OneReply {
    /// Starts `call` and waits for what it replies first.
    ///
    /// A second reply is passed over: `LAContext` is open, and what a subclass does must not end the program.
    static func wait(_ call: (@escaping @Sendable (Bool, (any Error)?) -> Void) -> Void) async throws -> Bool {
        try await withCheckedThrowingContinuation { continuation in
            let pending = Pending(continuation)
            call { isSuccess, error in
                pending.take()?.resume(with: error.map { .failure($0) } ?? .success(isSuccess))
            }
        }
    }

    private final class Pending: Sendable {
        private let continuation: Mutex<CheckedContinuation<Bool, any Error>?>

        init(_ continuation: CheckedContinuation<Bool, any Error>) {
            self.continuation = Mutex(continuation)
        }

        func take() -> CheckedContinuation<Bool, any Error>? {
            continuation.withLock { $0.take() }
        }
    }
}
