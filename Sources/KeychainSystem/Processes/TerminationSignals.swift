// SPDX-License-Identifier: Apache-2.0
internal import Dispatch
internal import Glibc

/// A handler of SIGINT and SIGTERM, which end the process otherwise.
///
/// Canceled when it is released. Later signals are ignored then, so a program releases it when it ends.
package final class TerminationSignals {
    private let sources: [any DispatchSourceSignal]

    /// Calls `onSignal` at each of the signals, on a thread of its own choice.
    package init(_ onSignal: @escaping @Sendable () -> Void) {
        sources = [SIGINT, SIGTERM].map { number in
            // The source receives the signal in place of the process.
            _ = signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { onSignal() }
            source.resume()
            return source
        }
    }

    deinit { for source in sources { source.cancel() } }
}
