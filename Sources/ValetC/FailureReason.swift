// SPDX-License-Identifier: Apache-2.0
// swift-format-ignore-file: AlwaysUseLowerCamelCase

internal import CValet
internal import Foundation

/// The reason of the last failed call of each thread.
///
/// It is a C string that the thread owns, so that a pointer to it stays valid until the next failure.
enum FailureReason {
    /// The thread's variable; nil if the process has no more of them.
    private static let key: pthread_key_t? = {
        var key = pthread_key_t()
        // `key` is a local variable. At the end of a thread its last text is freed.
        return unsafe pthread_key_create(&key, { unsafe free($0) }) == 0 ? key : nil
    }()

    /// Replaces the reason; nil if there is none.
    static func store(_ reason: String?) {
        guard let key else { return }
        // The text was allocated by `strdup` below, and the pointer that the caller may have is no longer valid.
        unsafe free(pthread_getspecific(key))
        _ = unsafe pthread_setspecific(key, reason.flatMap { unsafe strdup($0) })
    }

    static var current: UnsafePointer<CChar>? {
        guard let key, let text = unsafe pthread_getspecific(key) else { return nil }
        // A NUL-terminated text.
        return unsafe UnsafePointer(text.assumingMemoryBound(to: CChar.self))
    }
}

@c @implementation
package func valet_failure_reason() -> UnsafePointer<CChar>? {
    // Before anything else: another thread of the parent may have held a lock of the Swift runtime.
    guard !isForkedChild else { return nil }
    return unsafe FailureReason.current
}
