// SPDX-License-Identifier: Apache-2.0

/// One flush of a run of the workload, named by what is flushed and when.
///
/// The same plan flushes the same files in the same order, so that a point of one run names the same flush in the next one.
package struct FlushPoint: Hashable, Sendable, CustomStringConvertible {
    /// The index in the plan of the operation that has begun last.
    ///
    /// Operation 0 creates the keychain.
    package let operation: Int
    /// The path of the file or directory as a pattern of fnmatch(3), with an asterisk for random parts: `*/keychain.db-wal`, `*/keys`.
    package let file: String
    /// Which of the flushes of such files since the operation began, counted from one.
    package let occurrence: Int

    init(operation: Int, file: String, occurrence: Int) {
        self.operation = operation
        self.file = file
        self.occurrence = occurrence
    }

    package var description: String { "flush \(occurrence) of \(file) in operation \(operation)" }

    /// The point as arguments of the workload's command.
    var arguments: [String] { [String(operation), file, String(occurrence)] }

    package init?(arguments: some Collection<String>) {
        let words = Array(arguments)
        guard words.count == 3, let operation = Int(words[0]), let occurrence = Int(words[2]) else { return nil }
        self.init(operation: operation, file: words[1], occurrence: occurrence)
    }
}

/// Names the flushes of a log while it is read.
struct FlushCounter {
    private(set) var points: [FlushPoint] = []
    private var operation = 0
    /// By file, since the operation began.
    private var counts: [String: Int] = [:]

    mutating func note(mark: String) {
        let words = mark.split(separator: " ")
        guard words.first == "begin", words.count > 1, let index = Int(words[1]) else { return }
        operation = index
        counts = [:]
    }

    mutating func noteFlush(of path: String) {
        let file = Self.pattern(path)
        counts[file, default: 0] += 1
        points.append(FlushPoint(operation: operation, file: file, occurrence: counts[file, default: 0]))
    }

    /// The name with an asterisk for each part that is random: identifiers of stores and numbers of temporary files.
    private static func pattern(_ path: String) -> String {
        let name = path.split(separator: "/").last ?? ""
        let parts = name.split(separator: ".", omittingEmptySubsequences: false).map { part in
            part.count >= 16 && part.allSatisfy { $0.isHexDigit || $0 == "-" } ? "*" : part
        }
        return "*/" + parts.joined(separator: ".")
    }
}
