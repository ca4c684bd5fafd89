// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Creates keychains of increasing sizes.
///
/// Adding an item waits for a flush, so the keychain is filled in a file system in memory, and its closed files are then copied.
struct KeychainFiller {
    private let folder: ThrowAwayFolder
    private var itemCount = 0

    init() throws {
        let memory = "/dev/shm"
        folder = try FileManager.default.isWritableFile(atPath: memory) ? ThrowAwayFolder(in: memory) : ThrowAwayFolder()
    }

    func remove() { folder.remove() }

    /// Creates a keychain with `itemCount` items at `home`.
    ///
    /// `itemCount` must not decrease from call to call.
    mutating func makeKeychain(itemCount: Int, home: String) throws {
        let environment = Program.environment(keychainHome: folder.path)
        let command = Command(Program.path, ["fill", String(self.itemCount), String(itemCount)], environment: environment)
        _ = try command.output(timeoutSeconds: 7_200)
        self.itemCount = itemCount
        try FileManager.default.copyItem(atPath: folder.path, toPath: home)
        // Otherwise the system would write the copy to disk during a measurement, and delay its flushes.
        sync()
    }
}
