// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
internal import KeychainSystem

/// Finds out when the objects in a folder may have changed.
///
/// The kernel reports changes in a local file system (inotify(7)). Otherwise, and where the kernel has no watches left, the dates of the
/// directories are compared: after one second if something has changed, and after growing pauses of up to a minute if not.
struct FolderHints: Sendable {
    let objects: FolderObjects
    let calls: BlockingCalls

    /// Pauses between two looks at the folder, in seconds.
    private enum Pause {
        static let first = 1.0
        static let last = 60.0
        /// While the kernel reports changes: only whether the folder was unmounted, mounted, or replaced is looked for.
        static let whileWatched = 5.0
        /// A hint comes at least this often.
        static let hint = 3_600.0
    }

    /// How many looks after a change give a hint without a change.
    ///
    /// FAT has dates of two seconds, so a second change can leave the date as it is.
    private static let echoCount = 2

    /// What a look at the folder has found.
    private struct Look: Sendable {
        /// Nil: the folder is gone.
        var identity: FileStatus.Identity?
        /// Nil: the folder is looked at.
        var watch: DirectoryTreeWatch?
        /// The dates of all directories, unless the kernel reports changes.
        var dates: [String: Dates] = [:]

        func differs(from other: Look) -> Bool {
            identity != other.identity || watch !== other.watch || dates != other.dates
        }
    }

    private struct Dates: Equatable, Sendable {
        let modified: Int64
        let changed: Int64
    }

    /// Calls `hint` for each possible change, until the task is canceled.
    func run(_ hint: @escaping @Sendable (SyncStorageChange) -> Void) async {
        var last: Look?
        var pause = Pause.first
        var echoes = 0
        var secondsSinceHint = 0.0
        while !Task.isCancelled {
            let watch = last?.watch
            let seen = try? await calls.run(at: objects.root) { () throws(SyncStorageError) in find(watch, hint) }
            // Without an answer, nothing is known.
            let look = seen ?? last ?? Look()
            let isChanged = last.map { look.differs(from: $0) } ?? true
            if isChanged { echoes = Self.echoCount } else if echoes > 0 { echoes -= 1 }
            if isChanged || (echoes > 0 && look.watch == nil) || secondsSinceHint >= Pause.hint {
                hint(.unknown)
                secondsSinceHint = 0
            }
            if look.watch != nil {
                pause = Pause.whileWatched
            } else {
                pause = echoes > 0 ? Pause.first : min(2 * pause, Pause.last)
            }
            last = look
            guard (try? await objects.options.sleep(pause)) != nil else { return }
            secondsSinceHint += pause
        }
    }

    /// Looks at the folder; `watch` is that of the last look.
    private func find(_ watch: DirectoryTreeWatch?, _ hint: @escaping @Sendable (SyncStorageChange) -> Void) -> Look {
        guard let root = try? objects.openRoot(), let identity = (try? root.status())?.identity else { return Look() }
        if let watch, watch.isComplete, watch.rootIdentity == identity { return Look(identity: identity, watch: watch) }
        if objects.options.probe.reportsAllChanges(of: objects.root) {
            let selection = DirectoryTreeWatch.Selection(isFollowed: StorageName.isFolder, isReported: StorageName.mayBePart)
            let report = { @Sendable (created: [String]?) in hint(created.map { .created($0.filter(StorageName.isObject)) } ?? .unknown) }
            if let watch = try? DirectoryTreeWatch(objects.root, selection, onChange: report), watch.isComplete,
                watch.rootIdentity == identity
            {
                return Look(identity: identity, watch: watch)
            }
        }
        return Look(identity: identity, dates: dates(in: root))
    }

    /// Returns the dates of the root and of all directories below it.
    private func dates(in root: OpenDirectory) -> [String: Dates] {
        var dates: [String: Dates] = [:]
        var rest = [""]
        while let path = rest.popLast(), dates.count < FolderObjects.nameLimit {
            guard let directory = (try? objects.open(path.split(separator: "/"), in: root)) ?? nil, let status = try? directory.status()
            else { continue }
            dates[path] = Dates(modified: status.modificationNanoseconds, changed: status.changeNanoseconds)
            let prefix = path.isEmpty ? "" : path + "/"
            try? directory.forEachEntry { entry in
                if entry.kind == nil || entry.kind == .directory, StorageName.isFolder(prefix + entry.name) {
                    rest.append(prefix + entry.name)
                }
                return true
            }
        }
        return dates
    }
}
#endif
