// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc

/// A detached thread that handles no signals: signals belong to the program.
///
/// Neither a task nor a queue, because its body sleeps for as long as it runs.
package enum BackgroundThread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }

    /// Runs `body` on a new thread; returns false if the system has no thread to offer.
    package static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        // The thread inherits the mask of the thread that starts it. Both sets are local variables.
        var every = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&every)
        guard unsafe pthread_sigmask(SIG_SETMASK, &every, &previous) == 0 else { return false }
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }
        var thread = pthread_t()
        // The thread releases this reference.
        let context = unsafe Unmanaged.passRetained(Body(body))
        // The new thread inherits the vector registers, in which copying a secret leaves part of it. The dynamic linker saves them on the
        // new thread's stack when it resolves a symbol, and nothing would wipe them there.
        keychain_vector_registers_clear()
        let result = unsafe pthread_create(
            &thread, nil,
            { context in
                guard let context = unsafe context else { return nil }
                unsafe Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, context.toOpaque())
        guard result == 0 else {
            unsafe context.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
