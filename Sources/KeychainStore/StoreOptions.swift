// SPDX-License-Identifier: Apache-2.0

/// How a store is opened.
///
/// The defaults are what the engine uses.
package struct StoreOptions: Sendable {
    /// How long a call may wait for locks, all its waits together.
    package var busyTimeoutMilliseconds: Int
    package var fileSystem: FileSystemProbe
    /// For tests only: anything but `.full` loses acknowledged writes when the power fails.
    package var synchronous: SynchronousMode
    /// SQLite's layer below, by name; nil is the system's own.
    ///
    /// Tests put one there that fails on purpose.
    package var vfsName: String?

    package init(
        busyTimeoutMilliseconds: Int = 5_000, fileSystem: FileSystemProbe = .system, synchronous: SynchronousMode = .full,
        vfsName: String? = nil
    ) {
        self.busyTimeoutMilliseconds = busyTimeoutMilliseconds
        self.fileSystem = fileSystem
        self.synchronous = synchronous
        self.vfsName = vfsName
    }
}
