// SPDX-License-Identifier: Apache-2.0
internal import Glibc
internal import Synchronization

/// Reports changes in a directory and in the directories below it, also in those that are created later.
///
/// A thread waits in the kernel (inotify(7)) until something changes, and does not run before. Only changes that are made on this machine,
/// in a file system of the kernel, are reported. `FileWatch` watches single files instead, also ones whose directory is missing.
package final class DirectoryTreeWatch: Sendable {
    /// The directories and names that matter.
    package struct Selection: Sendable {
        /// Whether the directory with this path below the root is watched.
        let isFollowed: @Sendable (_ path: String) -> Bool
        /// Whether a change of this name, in any directory, is reported.
        let isReported: @Sendable (_ name: String) -> Bool

        package init(
            isFollowed: @escaping @Sendable (_ path: String) -> Bool, isReported: @escaping @Sendable (_ name: String) -> Bool
        ) {
            self.isFollowed = isFollowed
            self.isReported = isReported
        }
    }

    private let watcher: TreeWatcher

    /// Begins to watch.
    ///
    /// Every later change is reported: `onChange` is called on the thread of the watch, once for several changes at the same moment. It gets the
    /// paths below the root of files that are new or were written, or nil if something else has happened. Throws if the directory does not
    /// exist, or if the system has no inotify instance or no thread to offer.
    package init(_ root: String, _ selection: Selection, onChange: @escaping @Sendable ([String]?) -> Void) throws(Errno) {
        watcher = try TreeWatcher(root, selection, onChange)
        guard BackgroundThread.start({ [watcher] in watcher.run() }) else {
            watcher.end()
            throw .noMemory
        }
    }

    deinit { watcher.cancel() }

    /// The directory that is watched, which is no longer the one at its path after that was replaced, or mounted over.
    package var rootIdentity: FileStatus.Identity { watcher.rootIdentity }

    /// Whether every change is reported: the root is there, and the kernel had a watch for each directory.
    package var isComplete: Bool { watcher.isComplete }
}

private final class TreeWatcher: Sendable {
    private struct State {
        /// Negative after the end.
        var descriptor: Int32
        var root: Int32 = -1
        /// The paths of the directories below the root, by the numbers of their watches.
        var paths: [Int32: String] = [:]
        var isComplete = true
        var isCanceled = false
    }

    let rootIdentity: FileStatus.Identity
    private let root: String
    private let selection: DirectoryTreeWatch.Selection
    private let onChange: @Sendable ([String]?) -> Void
    private let state: Mutex<State>

    init(_ root: String, _ selection: DirectoryTreeWatch.Selection, _ onChange: @escaping @Sendable ([String]?) -> Void) throws(Errno) {
        self.root = root
        self.selection = selection
        self.onChange = onChange
        rootIdentity = try FileStatus(of: root, followsLinks: true).identity
        state = Mutex(State(descriptor: try Errno.check { inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK)) }))
        // The descriptor is closed by `end`, also if the following fails.
        let isWatched = state.withLock { state in
            watch("", &state)
            return state.root >= 0
        }
        // The path may have become another directory meanwhile.
        guard isWatched, (try? FileStatus(of: root, followsLinks: true))?.identity == rootIdentity else {
            end()
            throw .notFound
        }
    }

    var isComplete: Bool { state.withLock { $0.isComplete } }

    /// Watches a directory and those below it, each before its content is listed, so that no change is missed.
    private func watch(_ path: String, _ state: inout State) {
        var rest = [path]
        while let path = rest.popLast() {
            let events = IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
            let mask = path.isEmpty ? events : events | IN_DONT_FOLLOW
            let place = path.isEmpty ? root : root + "/" + path
            let number = unsafe inotify_add_watch(state.descriptor, place, UInt32(bitPattern: mask))
            guard number >= 0 else {
                // One that is gone, or a symbolic link, has no objects.
                if ![ENOENT, ENOTDIR, ELOOP].contains(errno) { state.isComplete = false }
                continue
            }
            state.paths[number] = path
            if path.isEmpty { state.root = number }
            let prefix = path.isEmpty ? "" : path + "/"
            do throws(Errno) {
                try OpenDirectory(place).forEachEntry { entry in
                    if entry.kind == nil || entry.kind == .directory, selection.isFollowed(prefix + entry.name) {
                        rest.append(prefix + entry.name)
                    }
                    return true
                }
            } catch .notFound {
            } catch {
                state.isComplete = false
            }
        }
    }

    /// Ends the thread: removing a watch is an event.
    func cancel() {
        state.withLock { state in
            state.isCanceled = true
            if state.descriptor >= 0 { inotify_rm_watch(state.descriptor, state.root) }
        }
    }

    func end() {
        state.withLock { state in
            state.isComplete = false
            if state.descriptor >= 0 { close(state.descriptor) }
            state.descriptor = -1
        }
    }

    // MARK: The thread

    func run() {
        let descriptor = FileDescriptor(rawValue: state.withLock { $0.descriptor })
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while (try? FileDescriptor.wait(for: [descriptor], until: .never)) != nil {
            // The buffer is used within the call only.
            let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(descriptor.rawValue, $0.baseAddress, $0.count) }
            guard count > 0 || errno == EAGAIN || errno == EINTR else { break }
            guard count > 0 else { continue }
            let (changes, isOver) = state.withLock { state in handle(buffer[..<count], &state) }
            if isOver { break }
            if !changes.isEmpty { onChange(changes.created) }
        }
        end()
        // The root is gone, or cannot be watched any more.
        if !state.withLock({ $0.isCanceled }) { onChange(nil) }
    }

    /// What is reported of several events.
    private struct Changes {
        /// Nil if there was another change than new files.
        var created: [String]? = []

        var isEmpty: Bool { created == [] }
    }

    /// Watches new directories; returns what is to be reported, and whether the watch is over.
    private func handle(_ bytes: ArraySlice<UInt8>, _ state: inout State) -> (changes: Changes, isOver: Bool) {
        var rest = bytes
        var changes = Changes()
        while let event = InotifyEvent(from: &rest) {
            if event.has(IN_Q_OVERFLOW) {
                // Events were lost, and new directories with them.
                watch("", &state)
                changes.created = nil
                continue
            }
            if event.watch == state.root, event.has(IN_IGNORED) || event.has(IN_DELETE_SELF) || event.has(IN_MOVE_SELF) {
                return (changes, true)
            }
            guard let path = state.paths[event.watch] else { continue }
            if event.has(IN_IGNORED) {
                state.paths[event.watch] = nil
            } else if event.has(IN_ISDIR) {
                let below = path.isEmpty ? event.name : path + "/" + event.name
                guard !event.name.isEmpty, selection.isFollowed(below) else { continue }
                if event.has(IN_CREATE) || event.has(IN_MOVED_TO) { watch(below, &state) }
                changes.created = nil
            } else if selection.isReported(event.name) {
                if event.has(IN_CREATE) || event.has(IN_MOVED_TO) || event.has(IN_CLOSE_WRITE) {
                    changes.created?.append(path.isEmpty ? event.name : path + "/" + event.name)
                } else {
                    changes.created = nil
                }
            }
        }
        return (changes, state.isCanceled)
    }
}
