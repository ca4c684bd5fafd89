// SPDX-License-Identifier: Apache-2.0
import Foundation
import Synchronization

/// The cleanup after an interruption of the run.
enum Interruption {
    /// The signals that terminate a program.
    static let signals = [SIGINT, SIGTERM, SIGHUP]

    private static let isUnderway = Atomic(false)

    private static let folders = Mutex<[String]>([])

    // Dispatch sources can be used from any thread; these are only retained.
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

    /// Removes `folder` and kills all child processes when the run is interrupted.
    static func remember(_ folder: String) {
        _ = unsafe sources
        folders.withLock { $0.append(folder) }
    }

    /// Does not return after the cleanup has begun.
    ///
    /// Otherwise the run would report killed child processes as failures, and write into the folder that is being removed.
    static func holdIfUnderway() {
        while isUnderway.load(ordering: .sequentiallyConsistent) { sleep(1) }
    }
}
