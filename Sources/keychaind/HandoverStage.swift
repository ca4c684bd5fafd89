// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore
internal import KeychainSystem

/// How far the handover of a user's keychain is, as a file without content beside the store whose name says it.
///
/// A rename changes the stage, so an interruption leaves the stage before or after it.
struct HandoverStage {
    let directory: String

    private static func name(_ kept: KeptKeychain) -> String? {
        switch kept {
        case .nothing, .inUse: nil
        case .incomplete: "handover.incomplete"
        case .prepared: "handover.prepared"
        case .releasing: "handover.releasing"
        }
    }

    private func path(_ kept: KeptKeychain) -> String? { Self.name(kept).map { "\(directory)/\($0)" } }

    func read() throws(KeychainFailure) -> KeptKeychain {
        for kept in [KeptKeychain.incomplete, .prepared, .releasing] {
            if let path = path(kept), try FileStatus.ifPresent(at: path) != nil { return kept }
        }
        return try FileStatus.ifPresent(at: directory + "/keychain.db") == nil ? .nothing : .inUse
    }

    /// Makes the directory for a copy of a store; removes an incomplete one in it, and a complete one of the same store.
    ///
    /// The complete copy of another store may be the only one.
    func begin(_ storeID: StoreID) throws(KeychainFailure) {
        switch try read() {
        case .nothing: break
        case .prepared where FileSystem.exists("\(directory)/keys/\(storeID.hexadecimal).key"):
            try change(from: .prepared, to: .incomplete)
            try removeFiles()
        case .incomplete: try removeFiles()
        case .inUse, .prepared, .releasing:
            throw KeychainFailure(.duplicateItem, "keychaind keeps a keychain of this user already", cause: .otherStore)
        }
        try PrivateDirectory.make(directory)
        try naming { () throws(Errno) in
            try FileSystem.createPrivateFile(directory + "/handover.incomplete")
            try FileSystem.flush(directory)
        }
    }

    func change(from present: KeptKeychain, to next: KeptKeychain) throws(KeychainFailure) {
        try naming { () throws(Errno) in
            switch (path(present), path(next)) {
            case (let present?, let next?): try FileSystem.rename(present, to: next)
            case (let present?, nil): try FileSystem.unlink(present)
            case (nil, let next?): try FileSystem.createPrivateFile(next)
            case (nil, nil): break
            }
            try FileSystem.flush(directory)
        }
    }

    /// Removes a keychain that was given back, and its directory.
    func removeReleased() throws(KeychainFailure) {
        try change(from: .releasing, to: .incomplete)
        try removeFiles()
        try? FileSystem.removeDirectory(directory)
    }

    /// Removes everything below the directory, and last the mark of an incomplete copy.
    private func removeFiles() throws(KeychainFailure) {
        try naming { () throws(Errno) in
            for name in try names(in: directory) where name != "handover.incomplete" { try remove("\(directory)/\(name)") }
            FileSystem.tryUnlink(directory + "/handover.incomplete")
            try FileSystem.flush(directory)
        }
    }

    private func remove(_ path: String) throws(Errno) {
        guard try FileStatus(of: path).kind == .directory else { return try FileSystem.unlink(path) }
        for name in try names(in: path) { try remove("\(path)/\(name)") }
        try FileSystem.removeDirectory(path)
    }

    private func names(in directory: String) throws(Errno) -> [String] {
        try FileSystem.names(in: directory).filter { $0 != "." && $0 != ".." }
    }

    private func naming(_ body: () throws(Errno) -> Void) throws(KeychainFailure) {
        do throws(Errno) {
            try body()
        } catch {
            throw FileSystem.creationFailure(error, in: directory)
        }
    }
}
