// SPDX-License-Identifier: Apache-2.0
import Foundation

/// Makes keychains of growing sizes.
///
/// Filling waits for the disk at each item, so it is done in memory, where that costs nothing; the closed files are then copied.
struct KeychainFiller {
    private let folder: ThrowAwayFolder
    private var itemCount = 0

    init() throws {
        let memory = "/dev/shm"
        folder = try FileManager.default.isWritableFile(atPath: memory) ? ThrowAwayFolder(in: memory) : ThrowAwayFolder()
    }

    func remove() { folder.remove() }

    /// Makes a keychain with `itemCount` items at `home`.
    ///
    /// Each call asks for no fewer than the one before.
    mutating func makeKeychain(itemCount: Int, home: String) throws {
        let environment = Program.environment(keychainHome: folder.path)
        let command = Command(Program.path, ["fill", String(self.itemCount), String(itemCount)], environment: environment)
        _ = try command.output(timeoutSeconds: 7_200)
        self.itemCount = itemCount
        try FileManager.default.copyItem(atPath: folder.path, toPath: home)
        // Otherwise the system would write the copy out while others wait for their flush.
        sync()
    }
}
