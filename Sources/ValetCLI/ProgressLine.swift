// SPDX-License-Identifier: Apache-2.0
import KeychainSystem
import Synchronization

/// A line on the terminal that shows how far long work is.
///
/// Without a terminal on standard error, it shows nothing. Any thread may show a text.
final class ProgressLine: Sendable {
    private let isShown = FileDescriptor.standardError.isTerminal
    private let width = Mutex<Int?>(0)

    /// Replaces the line.
    func show(_ text: @autoclosure () -> String) {
        guard isShown else { return }
        width.withLock { width in
            guard let shown = width else { return }
            width = Self.replace(shown, with: text())
        }
    }

    /// Removes the line, and shows nothing any more.
    func end() {
        width.withLock { width in
            if let shown = width, shown > 0 {
                _ = Self.replace(shown, with: "")
                StandardError.write("\r", terminator: "")
            }
            width = nil
        }
    }

    private static func replace(_ width: Int, with text: String) -> Int {
        let padding = String(repeating: " ", count: max(0, width - text.count))
        StandardError.write("\r\(text)\(padding)", terminator: "")
        return text.count
    }
}
