// SPDX-License-Identifier: Apache-2.0
internal import Dispatch
internal import Glibc

/// A handler of SIGINT and SIGTERM, which end the process otherwise.
///
/// Canceled when it is released. Later signals are ignored then, so a program releases it when it ends.
package final class TerminationSignals {
    private let sources: [any DispatchSourceSignal]

    /// Calls `onSignal` with the number of each of the signals, on a thread of its own choice.
    package init(_ onSignal: @escaping @Sendable (Int32) -> Void) {
        sources = [SIGINT, SIGTERM].map { number in
            // The source receives the signal in place of the process.
            _ = signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { onSignal(number) }
            source.resume()
            return source
        }
    }

    deinit { for source in sources { source.cancel() } }

    /// Ends the process as the signal does that has no handler, so that a shell learns of it.
    package static func endProcess(by number: Int32) -> Never {
        var raised = sigset_t()
        _ = signal(number, SIG_DFL)
        // `raised` is a local variable and outlives the calls.
        unsafe sigemptyset(&raised)
        unsafe sigaddset(&raised, number)
        _ = unsafe pthread_sigmask(SIG_UNBLOCK, &raised, nil)
        raise(number)
        _exit(128 + number)
    }
}
