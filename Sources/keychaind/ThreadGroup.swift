// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem
internal import Synchronization

/// Calls that run at the same time, each on a thread of its own.
enum ThreadGroup {
    private final class Results<Value: Sendable>: Sendable {
        private let values = Mutex<[Value]>([])
        private let expectedCount: Int
        /// Released with the last result.
        private let completion = TimedLock()

        init(expectedCount: Int) {
            self.expectedCount = expectedCount
            _ = completion.acquire(withinSeconds: 0)
        }

        func add(_ value: Value) {
            let count = values.withLock { values in
                values.append(value)
                return values.count
            }
            if count == expectedCount { completion.release() }
        }

        func wait() -> [Value] {
            while !completion.acquire(withinSeconds: .max) {}
            return values.withLock { $0 }
        }
    }

    /// Calls `body` for each element, and returns the results in no particular order.
    ///
    /// Without a thread a call runs on that of the caller.
    static func results<Element: Sendable, Value: Sendable>(
        for elements: [Element], _ body: @escaping @Sendable (Element) -> Value
    ) -> [Value] {
        guard elements.count > 1 else { return elements.map(body) }
        let results = Results<Value>(expectedCount: elements.count)
        for element in elements where !BackgroundThread.start({ results.add(body(element)) }) { results.add(body(element)) }
        return results.wait()
    }
}
