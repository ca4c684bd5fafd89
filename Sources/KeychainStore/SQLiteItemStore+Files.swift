// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

extension SQLiteItemStore {
    /// Whether there is a store at an absolute path.
    ///
    /// Looks, and opens nothing.
    ///
    /// Throws `.notAvailable` for a file or directory that must not be used (not private, not this user's, a symbolic link, empty,
    /// on a network file system); the reason names it and says what to do.
    package static func inspect(
        _ path: String, fileSystem: FileSystemProbe = .system
    ) throws(KeychainFailure) -> StoreFileState {
        try StoreFile.find(path, fileSystem: fileSystem) == nil ? .absent : .present
    }

    /// Makes a store with nothing in it but its keybag, and the directories it needs.
    ///
    /// Never touches a file that is there.
    ///
    /// Throws `.readOnly` where nothing can be written, `.notAvailable` when the disk is full or the place must not be used.
    package static func create(
        at path: String, storeID: StoreID, keybag: [UInt8], generation: UInt64, options: StoreOptions = StoreOptions()
    ) throws(KeychainFailure) -> CreationOutcome {
        try StoreCreation(path: path, storeID: storeID, keybag: keybag, keybagGeneration: generation, options: options).run()
    }
}
