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

    /// Throws `.duplicateItem` unless the store can be copied to the directory.
    func requireFree(for storeID: StoreID) throws(KeychainFailure) {
        switch try read() {
        case .nothing, .incomplete: return
        // An adoption of the same store was interrupted before it put the signpost in place, or after that.
        case .prepared where FileSystem.exists("\(directory)/keys/\(storeID.hexadecimal).key"): return
        case .inUse, .prepared, .releasing:
            throw KeychainFailure(.duplicateItem, "keychaind keeps a keychain of this user already", cause: .otherStore)
        }
    }

    /// Makes the directory for a copy of a store; removes an incomplete one in it, and sets a complete one aside, which may be the only one.
    func begin(_ storeID: StoreID) throws(KeychainFailure) {
        try requireFree(for: storeID)
        switch try read() {
        case .prepared: _ = try setAside()
        case .incomplete: try removeFiles()
        case .nothing, .inUse, .releasing: break
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

    /// Gives the directory another name, under which no program uses it; returns the path.
    func setAside() throws(KeychainFailure) -> String {
        for number in 1...Self.largestAsideCount {
            let path = "\(directory).aside-\(number)"
            guard !FileSystem.exists(path) else { continue }
            try naming { () throws(Errno) in
                try FileSystem.renameWithoutReplacing(directory, to: path)
                try FileSystem.flush(FileSystem.parent(of: directory))
            }
            return path
        }
        throw KeychainFailure(
            .allocate,
            "keychaind has set aside \(Self.largestAsideCount) keychains of this user, more than it does: let the administrator look at "
                + "\(directory).aside-1 and the others, and remove those that are not needed")
    }

    /// So that a program cannot fill the disk.
    private static let largestAsideCount = 8

    /// Removes an incomplete copy, and its directory; best effort.
    func removeIncomplete() {
        guard (try? read()) == .incomplete, (try? removeFiles()) != nil else { return }
        try? FileSystem.removeDirectory(directory)
    }

    /// Removes a keychain that was given back, and its directory.
    func removeReleased() throws(KeychainFailure) {
        try change(from: try read(), to: .incomplete)
        try removeFiles()
        try? FileSystem.removeDirectory(directory)
    }

    /// Removes everything below the directory, and last the mark of an incomplete copy.
    private func removeFiles() throws(KeychainFailure) {
        try naming { () throws(Errno) in
            for name in try names(in: directory) where name != "handover.incomplete" { try remove("\(directory)/\(name)") }
            // After a power cut without the mark, a store that is still there would count as the user's keychain.
            try FileSystem.flush(directory)
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
