// SPDX-License-Identifier: Apache-2.0
internal import Glibc
internal import Synchronization

/// Reports changes of files, also of files whose directory does not exist yet or is replaced.
///
/// A thread waits in the kernel (inotify(7)) until something changes, and does not run before. It watches directories, because a file that is
/// replaced is another file, and the nearest existing ancestor of a directory that is missing. If the kernel has no more inotify instances or
/// watches for this user, it looks twice a second instead. Changes that another machine makes in a network file system are not reported.
package final class FileWatch: Sendable {
    /// Files in one directory.
    package struct Target: Sendable {
        /// The absolute path of the directory.
        let directory: String
        /// The file of which a new or a missing version is another content.
        let mainFile: String?
        /// Whether a new date of a file is reported as well.
        let reportsDates: Bool
        /// Whether a program flushes a file after it has written it, so that the change has no effect yet, and writes a file of another target once it
        /// has.
        let isFlushed: Bool
        /// Whether a change of the content of a file in the directory is reported.
        let isWatched: @Sendable (_ name: String) -> Bool

        package init(
            directory: String, mainFile: String? = nil, reportsDates: Bool = false, isFlushed: Bool = false,
            isWatched: @escaping @Sendable (_ name: String) -> Bool
        ) {
            self.directory = directory
            self.mainFile = mainFile
            self.reportsDates = reportsDates
            self.isFlushed = isFlushed
            self.isWatched = isWatched
        }
    }

    package enum Event: Comparable, Sendable {
        /// A file was written whose change has an effect once it is flushed.
        case announced
        /// A file was written, or one that is not a main file was created or removed.
        case written
        /// A main file or its directory was created, replaced, or removed.
        case replaced
    }

    /// What was found after an event.
    package enum Finding: Sendable {
        case changed
        /// The change may have no effect yet, because a program can flush a file after it has written it.
        case unchanged
        /// The files cannot be used.
        case unusable
    }

    private let watcher: Watcher

    /// Begins to watch.
    ///
    /// `onEvent` is called on the thread of the watch: at its beginning, and then once for several changes at the same moment. After a file was written
    /// that is flushed later, it is called only after a pause, and again after growing pauses, until it has found no change for about five seconds.
    /// While the files cannot be used, it is called once a second, because looking at them may change them. Throws `.noMemory` if the system has no
    /// thread to offer.
    package init(_ targets: [Target], onEvent: @escaping @Sendable (Event) -> Finding) throws(Errno) {
        watcher = Watcher(targets, onEvent)
        // Watched when this returns: a change from now on is reported.
        watcher.watchAll()
        guard BackgroundThread.start({ [watcher] in watcher.run() }) else {
            watcher.cancel()
            watcher.end()
            throw .noMemory
        }
    }

    deinit { cancel() }

    /// Ends the watch.
    ///
    /// An event may be reported while this is called, and none afterwards.
    package func cancel() { watcher.cancel() }
}

private final class Watcher: Sendable {
    /// A watch of the kernel for one target.
    private struct Watch {
        /// What the watched directory is to the target.
        enum Role {
            case directory
            /// Its nearest ancestor that exists, in which the next part of the path is missing.
            case parent(missing: String)
            /// Renaming or removing it renames or removes the directory.
            case ancestor

            var mask: Int32 {
                let own = IN_DELETE_SELF | IN_MOVE_SELF
                let events =
                    switch self {
                    case .directory: IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | own
                    case .parent: IN_CREATE | IN_MOVED_TO | own
                    case .ancestor: own
                    }
                // One directory can have several roles, of which none takes the events of another.
                return events | IN_ONLYDIR | IN_MASK_ADD
            }
        }

        let target: Int
        let role: Role
    }

    private struct State {
        /// Nil: no instance is available, or the watch has ended.
        var descriptor: FileDescriptor?
        var watches: [Int32: [Watch]] = [:]
        /// The targets of which the kernel watches nothing.
        var unwatched: Set<Int> = []
        var isCanceled = false
    }

    private let targets: [FileWatch.Target]
    private let onEvent: @Sendable (FileWatch.Event) -> FileWatch.Finding
    private let state: Mutex<State>

    init(_ targets: [FileWatch.Target], _ onEvent: @escaping @Sendable (FileWatch.Event) -> FileWatch.Finding) {
        self.targets = targets
        self.onEvent = onEvent
        let number = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        state = Mutex(State(descriptor: number < 0 ? nil : FileDescriptor(rawValue: number)))
    }

    func watchAll() {
        state.withLock { state in for target in targets.indices { watch(target, &state) } }
    }

    /// Watches the directory of a target, or its nearest ancestor that exists.
    private func watch(_ target: Int, _ state: inout State) {
        state.unwatched.insert(target)
        guard let descriptor = state.descriptor else { return }
        for (number, watches) in state.watches where watches.contains(where: { $0.target == target }) {
            let others = watches.filter { $0.target != target }
            state.watches[number] = others.isEmpty ? nil : others
            if others.isEmpty { inotify_rm_watch(descriptor.rawValue, number) }
        }
        var path = targets[target].directory
        var role = Watch.Role.directory
        var isAbsent = false
        while true {
            let number = unsafe inotify_add_watch(descriptor.rawValue, path, UInt32(bitPattern: role.mask))
            guard number < 0 else {
                // It may have been made before its parent was watched. One that is there and cannot be watched is waited for as a missing one.
                if case .parent(let name) = role, isAbsent, (try? FileStatus(of: path + "/" + name, followsLinks: true)) != nil {
                    if state.watches[number] == nil { inotify_rm_watch(descriptor.rawValue, number) }
                    path = targets[target].directory
                    role = .directory
                    continue
                }
                state.watches[number, default: []].append(Watch(target: target, role: role))
                state.unwatched.remove(target)
                watchAncestors(of: path, target, descriptor, &state)
                return
            }
            isAbsent = errno == ENOENT
            guard path != "/" else { return }
            role = .parent(missing: String(path[path.index(after: path.lastIndex(of: "/") ?? path.startIndex)...]))
            path = FileSystem.parent(of: path)
        }
    }

    /// Watches for the renaming of an ancestor, which the directory itself does not report.
    private func watchAncestors(of path: String, _ target: Int, _ descriptor: FileDescriptor, _ state: inout State) {
        let role = Watch.Role.ancestor
        var path = path
        while path != "/" {
            path = FileSystem.parent(of: path)
            let number = unsafe inotify_add_watch(descriptor.rawValue, path, UInt32(bitPattern: role.mask))
            if number >= 0 { state.watches[number, default: []].append(Watch(target: target, role: role)) }
        }
    }

    /// Ends the thread: removing a watch is an event, and without a watch the thread wakes up by itself.
    func cancel() {
        state.withLock { state in
            state.isCanceled = true
            guard let descriptor = state.descriptor else { return }
            for number in state.watches.keys { inotify_rm_watch(descriptor.rawValue, number) }
        }
    }

    func end() {
        state.withLock { state in
            if let descriptor = state.descriptor { close(descriptor.rawValue) }
            state.descriptor = nil
            state.watches = [:]
        }
    }

    // MARK: The thread

    /// What the thread waits for.
    private enum Phase {
        case events
        /// The effect of a change, for so many milliseconds.
        case effect(pauseMilliseconds: UInt64)
        case usability
    }

    private static let firstPauseMilliseconds: UInt64 = 4
    private static let lastPauseMilliseconds: UInt64 = 4_096
    private static let pauseGrowth: UInt64 = 4
    /// How long a transaction writes to a file before it flushes it, so that one event is read for all of its writes.
    private static let writingNanoseconds: UInt64 = 300_000
    private static let pollingIntervalMilliseconds: UInt64 = 500
    private static let unusableIntervalMilliseconds: UInt64 = 1_000
    /// How many events are reported one by one if each follows the one before within the first pause.
    ///
    /// A program that stores many items writes all the time, and a report for each of its writes would take a processor. Those that follow share a
    /// report in each pause of a burst.
    private static let burstCount = 8
    private static let burstPauseMilliseconds: UInt64 = 5

    func run() {
        defer { end() }
        var phase = phase(after: onEvent(.written))
        var eventCount = 0
        while true {
            let deadline = deadline(of: phase)
            var found = waitForEvent(until: deadline)
            eventCount = found == nil ? 0 : eventCount + 1
            if eventCount > Self.burstCount {
                MonotonicClock.sleep(nanoseconds: Self.burstPauseMilliseconds * 1_000_000)
                found = [found, waitForEvent(until: .after(milliseconds: 0))].compactMap(\.self).max()
            }
            guard !state.withLock({ $0.isCanceled }) else { return }
            switch phase {
            case .usability:
                // Most of these events come from looking.
                while !deadline.isOver {
                    found = [found, waitForEvent(until: deadline)].compactMap(\.self).max()
                    guard !state.withLock({ $0.isCanceled }) else { return }
                }
                phase = self.phase(after: onEvent(max(found ?? .written, .written)))
            case .effect(let pause) where found == nil:
                let finding = onEvent(.written)
                if finding == .unchanged {
                    phase = pause < Self.lastPauseMilliseconds ? .effect(pauseMilliseconds: Self.pauseGrowth * pause) : .events
                } else {
                    phase = self.phase(after: finding)
                }
            case .events where found == .announced, .effect where found == .announced:
                MonotonicClock.sleep(nanoseconds: Self.writingNanoseconds)
                phase = .effect(pauseMilliseconds: Self.firstPauseMilliseconds)
            case .events where found == .written, .effect where found == .written:
                // It has its effect. If another change was announced, it is announced again when it has.
                phase = onEvent(.written) == .unusable ? .usability : .effect(pauseMilliseconds: Self.lastPauseMilliseconds)
            case .events, .effect: phase = self.phase(after: onEvent(found ?? .written))
            }
        }
    }

    private func phase(after finding: FileWatch.Finding) -> Phase {
        switch finding {
        // Another change may have been written and not yet flushed.
        case .changed, .unchanged: .effect(pauseMilliseconds: Self.firstPauseMilliseconds)
        case .unusable: .usability
        }
    }

    private func deadline(of phase: Phase) -> Deadline {
        switch phase {
        case .events:
            state.withLock { $0.unwatched.isEmpty } ? .never : .after(milliseconds: Self.pollingIntervalMilliseconds)
        case .effect(let pause): .after(milliseconds: pause)
        case .usability: .after(milliseconds: Self.unusableIntervalMilliseconds)
        }
    }

    /// Waits for an event that concerns the targets; returns nil at the deadline, or if the watch was canceled.
    private func waitForEvent(until deadline: Deadline) -> FileWatch.Event? {
        guard let descriptor = state.withLock({ $0.descriptor }) else {
            MonotonicClock.sleep(nanoseconds: deadline.remainingNanoseconds)
            return nil
        }
        while !state.withLock({ $0.isCanceled }) {
            guard let ready = try? FileDescriptor.wait(for: [descriptor], until: deadline), !ready.isEmpty else { return nil }
            if let event = readEvents(descriptor) { return event }
        }
        return nil
    }

    /// Reads the events that are there; returns the most important one, or nil if none concerns the targets.
    private func readEvents(_ descriptor: FileDescriptor) -> FileWatch.Event? {
        // One event has at most 16 bytes and a name.
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        // The buffer is used within the call only.
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(descriptor.rawValue, $0.baseAddress, $0.count) }
        guard count > 0 else { return nil }
        return state.withLock { state in
            var found: FileWatch.Event?
            var rest = buffer[..<count]
            while let event = InotifyEvent(from: &rest) {
                found = [found, handle(event, &state)].compactMap(\.self).max()
            }
            return found
        }
    }

    private func handle(_ event: InotifyEvent, _ state: inout State) -> FileWatch.Event? {
        if event.has(IN_Q_OVERFLOW) {
            // The lost events may be those of directories.
            for target in targets.indices { watch(target, &state) }
            return .replaced
        }
        var found: FileWatch.Event?
        for watch in state.watches[event.watch] ?? [] {
            let target = targets[watch.target]
            if event.has(IN_DELETE_SELF) || event.has(IN_MOVE_SELF) || event.has(IN_IGNORED) {
                if event.has(IN_IGNORED) { state.watches[event.watch] = nil }
                self.watch(watch.target, &state)
                found = .replaced
            } else if case .ancestor = watch.role {
                continue
            } else if case .parent(let missing) = watch.role {
                guard event.name == missing, event.has(IN_CREATE) || event.has(IN_MOVED_TO) else { continue }
                self.watch(watch.target, &state)
                found = .replaced
            } else if event.has(IN_ATTRIB) {
                if target.reportsDates, target.isWatched(event.name) { found = max(found ?? .written, .written) }
            } else if event.name == target.mainFile, !event.has(IN_MODIFY) {
                found = .replaced
            } else if target.isWatched(event.name) {
                let event = target.isFlushed ? FileWatch.Event.announced : .written
                found = max(found ?? event, event)
            }
        }
        return found
    }
}

/// An event as the kernel writes it.
///
/// Source: inotify(7), `struct inotify_event`.
struct InotifyEvent {
    let watch: Int32
    private let mask: UInt32
    let name: String

    /// Takes the first event from `bytes`; nil if there is none.
    init?(from bytes: inout ArraySlice<UInt8>) {
        guard bytes.count >= 16 else { return nil }
        let header = Array(bytes.prefix(16))
        // Four words in the byte order of the machine; each lies within the header.
        func word(_ index: Int) -> UInt32 {
            unsafe header.withUnsafeBytes { unsafe $0.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self) }
        }
        watch = Int32(bitPattern: word(0))
        mask = word(1)
        let name = bytes.dropFirst(16).prefix(Int(word(3)))
        self.name = String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
        bytes = bytes.dropFirst(16 + name.count)
    }

    func has(_ flag: Int32) -> Bool { mask & UInt32(truncatingIfNeeded: flag) != 0 }
}
