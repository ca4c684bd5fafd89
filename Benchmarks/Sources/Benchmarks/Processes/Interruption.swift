// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization

/// What remains to be done when somebody ends the run early.
enum Interruption {
    /// The signals that people and systems send to end a program.
    static let signals = [SIGINT, SIGTERM, SIGHUP]

    private static let isUnderway = Atomic(false)

    private static let folders = Mutex<[String]>([])

    // Dispatch lets sources be used from any thread; nobody does anything with these but keep them.
    nonisolated(unsafe) private static let sources: [any DispatchSourceSignal] = signals.map { number in
        signal(number, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: number)
        source.setEventHandler {
            isUnderway.store(true, ordering: .sequentiallyConsistent)
            Descendants.end()
            for folder in folders.withLock({ $0 }) { try? FileManager.default.removeItem(atPath: folder) }
            exit(128 + number)
        }
        source.resume()
        return source
    }

    /// Has `folder` removed, and all child processes ended, on interruption.
    static func remember(_ folder: String) {
        _ = unsafe sources
        folders.withLock { $0.append(folder) }
    }

    /// Does not return once the end has begun.
    ///
    /// Otherwise the run would take the end of its child processes for a finding, and go on to write into what is being removed.
    static func holdIfUnderway() {
        while isUnderway.load(ordering: .sequentiallyConsistent) { sleep(1) }
    }
}
