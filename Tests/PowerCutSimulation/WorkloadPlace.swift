// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// Where a workload is recorded, and the images of its disk are looked at.
package struct WorkloadPlace {
    private let directory: String
    /// The recorded root, where the images are put afterwards: a key file names the path of its store.
    package var disk: String { directory + "/disk" }
    package var home: String { disk + "/new/home" }
    package var log: String { directory + "/log" }
    /// Rules for passcodes that make deriving cheap.
    package var policy: String { directory + "/policy.json" }

    /// In a directory that is there.
    package init(_ directory: String) throws {
        self.directory = directory
        try fill()
    }

    /// Where one was before: `disk` is its recorded root.
    init(withDisk disk: String) throws {
        directory = URL(filePath: disk).deletingLastPathComponent().path
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        try fill()
    }

    func remove() { try? FileManager.default.removeItem(atPath: directory) }

    private func fill() throws {
        try FileManager.default.createDirectory(
            atPath: disk, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        try #"{"passcodeMinimumLength": 4, "passcodeMemoryMiB": 1}"#.write(toFile: policy, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: policy)
    }
}
