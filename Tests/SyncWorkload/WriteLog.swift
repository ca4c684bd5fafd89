// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// A write as the process that made it has logged it.
struct LoggedWrite {
    /// The device and a number, such as `2.317`.
    let write: String
    let item: Int
    let isDeletion: Bool
    /// The writes whose values it replaced: the one that the program read in the same transaction, and for a deletion also the conflict copies.
    let seen: [String]
    /// Whether the keychain told the program that it is durable.
    ///
    /// Otherwise it may have happened or not.
    var isAcknowledged = false
}

/// The log of one device's writes: a line before each commit, and one after it.
///
///     begin 2.317 put 12 1.300
///     done 2.317
struct WriteLog {
    private let descriptor: Int32
    let path: String

    init(_ device: Int, in root: String) throws {
        path = root + "/log-\(device)"
        // The path is used during the call only.
        descriptor = unsafe open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure("\(path) cannot be opened") }
    }

    /// Notes a write within its transaction.
    ///
    /// If the transaction is rolled back and runs again, the last line counts.
    func begin(_ write: String, isDeletion: Bool, of item: Int, seen: [String]) {
        append((["begin", write, isDeletion ? "delete" : "put", "\(item)"] + seen).joined(separator: " "))
    }

    /// Notes that a write was acknowledged.
    func end(_ write: String) { append("done \(write)") }

    private func append(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        // The bytes are read during the call only.
        let count = unsafe Glibc.write(descriptor, bytes, bytes.count)
        precondition(count == bytes.count && fdatasync(descriptor) == 0, "the log of writes cannot be written")
    }

    /// Reads the writes of a device in their order.
    static func writes(of device: Int, in root: String) throws -> [LoggedWrite] {
        guard let text = try? String(contentsOfFile: root + "/log-\(device)", encoding: .utf8) else { return [] }
        var writes: [LoggedWrite] = []
        var indices: [String: Int] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            switch words.first {
            case "begin" where words.count >= 4:
                guard let item = Int(words[3]) else { throw Failure("the log has the line \(line)") }
                let write = LoggedWrite(write: words[1], item: item, isDeletion: words[2] == "delete", seen: Array(words[4...]))
                if let index = indices[words[1]] {
                    writes[index] = write
                } else {
                    indices[words[1]] = writes.count
                    writes.append(write)
                }
            case "done" where words.count == 2:
                guard let index = indices[words[1]] else { throw Failure("the log has the line \(line)") }
                writes[index].isAcknowledged = true
            default: throw Failure("the log has the line \(line)")
            }
        }
        return writes
    }
}
