// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// Directories that only their owner can use, made so that they survive a power cut.
package enum PrivateDirectory {
    /// Makes what is missing of the directory, from the top.
    ///
    /// Each new name is flushed before something is put below it.
    ///
    /// Throws `.readOnly` where nothing can be written, `.notAvailable` when the disk is full.
    package static func make(_ directory: String) throws(KeychainFailure) {
        guard directory != "/" else { return }
        let parent = try StoreLocation.parent(of: directory)
        if try StoreFile.facts(of: directory) == nil {
            try make(parent)
            do throws(POSIX.ErrorNumber) {
                try POSIX.makeDirectory(directory)
            } catch .exists {
                // Another process was faster.
            } catch {
                throw failure(error, directory)
            }
        }
        // Also for a directory that was there: another process may have made it a moment ago and not have come this far.
        do throws(POSIX.ErrorNumber) {
            try POSIX.flush(POSIX.resolvedPath(of: parent))
        } catch  where error.meansReadOnly {
            // Who may not look into the parent has made nothing there.
        } catch {
            throw failure(error, directory)
        }
    }

    /// What an error number means to whoever wanted to put something into a directory.
    static func failure(_ error: POSIX.ErrorNumber, _ directory: String) -> KeychainFailure {
        if error.meansFull { return KeychainFailure(.notAvailable, "the disk is full: nothing was made in \(directory)") }
        let status: KeychainStatus = error.meansReadOnly ? .readOnly : error.meansIO ? .inputOutput : .notAvailable
        return KeychainFailure(status, "nothing can be made in \(directory): \(error.message)")
    }
}
