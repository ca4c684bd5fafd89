// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

/// One authentication that serves every call, until a new one is wanted.
///
/// `@unchecked Sendable`: `lock` guards what changes, and a context is used by one call after another.
@available(tvOS, unavailable)
@available(watchOS, unavailable)
final class SinglePrompt: @unchecked Sendable {
    /// A context, and the calls that have it.
    private final class Holder {
        let context = LAContext()
        /// Calls take turns: the ones that wait while the person answers the first need not ask any more, and each has its own words.
        let turn = NSLock()
        var callCount = 0
        var isRetired = false
    }

    private let lock = NSLock()
    private var current = Holder()

    /// Runs a call with the authentication at hand; it asks in these words if there is none.
    func perform<Result, Failure: Error>(
        _ prompt: String, _ body: (AskingOptions) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let holder = lock.withLock {
            current.callCount += 1
            return current
        }
        holder.turn.lock()
        defer {
            holder.turn.unlock()
            leave(holder)
        }
        if !prompt.isEmpty { holder.context.localizedReason = prompt }
        return try body(AskingOptions(entries: [kSecUseAuthenticationContext as String: holder.context]))
    }

    /// Makes the next call ask.
    ///
    /// One that has begun goes on with the authentication it has.
    func renew() {
        lock.withLock {
            current.isRetired = true
            if current.callCount == 0 { current.context.invalidate() }
            current = Holder()
        }
    }

    private func leave(_ holder: Holder) {
        lock.withLock {
            holder.callCount -= 1
            if holder.isRetired, holder.callCount == 0 { holder.context.invalidate() }
        }
    }
}
