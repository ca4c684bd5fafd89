// SPDX-License-Identifier: Apache-2.0
import Foundation

/// An unnamed file for the output of a program.
///
/// Unlike a pipe, it is never full and never blocks a reader.
@safe final class ScratchFile {
    // Closed by deinit, never handed out.
    private let file: UnsafeMutablePointer<FILE>

    init() throws {
        guard let file = unsafe tmpfile() else { throw CocoaError(.fileWriteUnknown) }
        unsafe self.file = file
    }

    deinit { unsafe fclose(file) }

    var descriptor: Int32 { unsafe fileno(file) }

    func contents() throws -> Data {
        let handle = FileHandle(fileDescriptor: descriptor)
        try handle.seek(toOffset: 0)
        return try handle.readToEnd() ?? Data()
    }
}
