// SPDX-License-Identifier: Apache-2.0
internal import Glibc

/// The thread that lets go of keys in memory when their time is up or their store was locked, also in an idle process.
///
/// It starts with the first key and ends after the last.
enum ProcessMemoryWatcher {
    /// Between two looks: with the time that a look takes, less than half a second.
    private static let pauseNanoseconds = 400_000_000

    /// False when the system has no thread to give.
    static func start(watching keys: ProcessMemoryKeys) -> Bool {
        // Signals are the program's: the thread inherits a mask that takes none. Both sets are ours.
        var every = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&every)
        guard unsafe pthread_sigmask(SIG_SETMASK, &every, &previous) == 0 else { return false }
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }
        var thread = pthread_t()
        // The thread takes this reference over.
        let context = unsafe Unmanaged.passRetained(keys)
        let result = unsafe pthread_create(
            &thread, nil,
            { context in
                guard let context = unsafe context else { return nil }
                ProcessMemoryWatcher.watch(unsafe Unmanaged<ProcessMemoryKeys>.fromOpaque(context).takeRetainedValue())
                return nil
            }, context.toOpaque())
        guard result == 0 else {
            unsafe context.release()
            return false
        }
        // Nobody waits for its end.
        pthread_detach(thread)
        return true
    }

    private static func watch(_ keys: ProcessMemoryKeys) {
        while keys.look() {
            var pause = timespec(tv_sec: 0, tv_nsec: pauseNanoseconds)
            // Every signal is masked: it does not return early.
            _ = unsafe nanosleep(&pause, nil)
        }
    }
}
