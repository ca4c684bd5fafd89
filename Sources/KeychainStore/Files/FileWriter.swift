// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// Writes to the end of a file that may lie anywhere.
package final class FileWriter {
    private let descriptor: Int32
    private let directory: String

    init(appendingTo path: String, in directory: String) throws(KeychainFailure) {
        do throws(POSIX.ErrorNumber) {
            descriptor = try POSIX.openForAppending(path)
        } catch {
            throw PrivateDirectory.failure(error, directory).advising(.writeElsewhere)
        }
        self.directory = directory
    }

    deinit { POSIX.closeDescriptor(descriptor) }

    /// Writes all of the bytes, or throws: `.notAvailable` when the disk is full, `.inputOutput` when it failed.
    package func append(_ bytes: [UInt8]) throws(KeychainFailure) {
        do throws(POSIX.ErrorNumber) {
            try POSIX.write(bytes, to: descriptor)
        } catch {
            throw PrivateDirectory.failure(error, directory).advising(.writeElsewhere)
        }
    }

    /// Through the descriptor that wrote: it hears of every error.
    func flush() throws(KeychainFailure) {
        do throws(POSIX.ErrorNumber) {
            try POSIX.flush(descriptor)
        } catch {
            throw PrivateDirectory.failure(error, directory).advising(.writeElsewhere)
        }
    }
}
