// SPDX-License-Identifier: Apache-2.0
internal import CKeychainShims
internal import Glibc

/// A handle of a process, which never stands for another process with the same number, also if that has executed another program.
package final class ProcessHandle: Sendable {
    let descriptor: FileDescriptor

    /// Opens the handle of the process that has the number now.
    package init(ofProcess id: Int32) throws(Errno) {
        descriptor = FileDescriptor(rawValue: try OpenFile.aboveStandardStreams(try Errno.check { keychain_process_handle_open(id) }))
    }

    /// Takes over a descriptor.
    init(adopting number: Int32) {
        descriptor = FileDescriptor(rawValue: number)
    }

    deinit { _ = Glibc.close(descriptor.rawValue) }

    /// Whether the process has ended.
    ///
    /// As long as it has not, its number belongs to it.
    package var hasEnded: Bool {
        // A descriptor that cannot be examined says nothing about the number.
        (try? FileDescriptor.wait(for: [descriptor], until: .now).isEmpty) != true
    }

    /// Asks the process to end, with SIGTERM.
    package func requestEnd() throws(Errno) {
        let code = keychain_process_handle_signal(descriptor.rawValue, SIGTERM)
        guard code == 0 else { throw Errno(rawValue: code) }
    }

    /// Waits for the end of the process; returns false if it runs at the deadline.
    package func waitForEnd(until deadline: Deadline) throws(Errno) -> Bool {
        try !FileDescriptor.wait(for: [descriptor], until: deadline).isEmpty
    }

    /// The number of the process; nil if it has ended, or is in another process namespace.
    package var processID: Int32? {
        guard let text = ProcessFile("/proc/self/fdinfo/\(descriptor.rawValue)").text,
            let id = ProcessFile.field("Pid:", in: text).flatMap({ Int32($0) }), id > 0
        else { return nil }
        return id
    }
}

/// A file in which the kernel describes a process.
package struct ProcessFile {
    /// The content; nil if it cannot be read, or has more than 4 MiB.
    package let bytes: [UInt8]?

    package init(_ path: String) {
        do throws(Errno) {
            let file = try OpenFile(path, .read)
            bytes = try file.descriptor.readToEnd(byteLimit: 4 << 20)
        } catch {
            bytes = nil
        }
    }

    package var text: String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

    /// The words after a title at the beginning of a line.
    package static func fields(_ title: String, in text: String) -> [Substring] {
        let line = text.split(separator: "\n").first { $0.hasPrefix(title) }
        return line?.dropFirst(title.count).split(whereSeparator: \.isWhitespace) ?? []
    }

    /// The first word after a title at the beginning of a line.
    package static func field(_ title: String, in text: String) -> Substring? { fields(title, in: text).first }
}

/// The execution of one program by a process, from its beginning to the next one.
package final class ProgramExecution: Sendable {
    /// The memory of the program: the kernel gives another one to the next program, also if that is the same file.
    private let memory: OpenFile

    /// The execution that goes on now.
    package init(ofProcess id: Int32) throws(Errno) {
        memory = try OpenFile("/proc/\(id)/maps", .read)
    }

    /// Whether the memory of the program is there.
    ///
    /// It is gone once the process has ended, or has executed another program, unless a child process shares it that has not executed one yet.
    package var goesOn: Bool {
        var byte: [UInt8] = [0]
        // Nothing can be read of memory that is gone.
        return (try? memory.descriptor.read(into: &byte, at: 0)) == 1
    }
}
