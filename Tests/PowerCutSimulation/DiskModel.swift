// SPDX-License-Identifier: Apache-2.0
internal import Foundation
import KeychainSystem
package import KeychainTestSupport

/// A change below the recorded root, or a word of the program that made it.
package enum DiskEvent {
    case mark(String)
    case fileMade(path: String, inode: UInt64)
    case directoryMade(path: String, inode: UInt64)
    case written(inode: UInt64, offset: Int, bytes: [UInt8])
    case truncated(inode: UInt64, byteCount: Int)
    case flushed(inode: UInt64)
    /// The program was told that it failed; what was to be flushed may be on the disk or not, and no later flush brings it there.
    case flushFailed(inode: UInt64)
    case linked(from: String, to: String)
    case renamed(from: String, to: String)
    case removed(path: String)
}

/// The bytes of a file.
struct FileContent: Hashable {
    private(set) var bytes: [UInt8] = []

    mutating func apply(_ change: DiskFile.Change) {
        switch change {
        case .truncation(let byteCount): resize(to: byteCount)
        case .write(let offset, let new):
            if offset + new.count > bytes.count { resize(to: offset + new.count) }
            // The place was made large enough just now.
            unsafe bytes.withUnsafeMutableBytes { place in
                unsafe UnsafeMutableRawBufferPointer(rebasing: place[offset..<offset + new.count]).copyBytes(from: new)
            }
        }
    }

    private mutating func resize(to byteCount: Int) {
        if byteCount < bytes.count {
            bytes.removeLast(bytes.count - byteCount)
        } else {
            bytes += [UInt8](repeating: 0, count: byteCount - bytes.count)
        }
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(bytes.count)
        // At once: byte by byte it would take most of the time of a run.
        unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    }
}

/// A file's content: what is on the disk for certain, and what a power cut may take or leave.
struct DiskFile {
    enum Change {
        case write(offset: Int, bytes: [UInt8])
        case truncation(byteCount: Int)
    }

    private struct Step {
        let change: Change
        var state: State
    }

    private enum State {
        case pending
        /// A flush of it failed: no later one brings it to the disk.
        case lost
        case durable
    }

    /// What no power cut takes, as far as nothing uncertain lies before it.
    private var durable = FileContent()
    private var steps: [Step] = []

    var hasUnflushedChanges: Bool { steps.contains { $0.state != .durable } }

    mutating func change(_ change: Change) { steps.append(Step(change: change, state: .pending)) }

    mutating func flush() {
        for index in steps.indices where steps[index].state == .pending { steps[index].state = .durable }
        // Once folded into the content it costs nothing any more.
        let certain = steps.prefix { $0.state == .durable }
        for step in certain { durable.apply(step.change) }
        steps.removeFirst(certain.count)
    }

    mutating func failFlush() {
        for index in steps.indices where steps[index].state == .pending { steps[index].state = .lost }
    }

    /// The content after a power cut, of the uncertain changes having what `survival` leaves.
    ///
    /// The changes that are left have their order: a disk may write the newer of two sooner, and then keeps the newer. Which of
    /// two was written first shows only in which of them is missing.
    func content(_ survival: inout Survival) -> FileContent {
        var content = durable
        var decision = survival.decision(stepCount: steps.count { $0.state != .durable })
        for step in steps {
            guard step.state != .durable else {
                content.apply(step.change)
                continue
            }
            for change in decision.survivingParts(of: step.change) { content.apply(change) }
        }
        return content
    }

    /// As the program sees it.
    var seen: FileContent {
        var survival = Survival.everything
        return content(&survival)
    }
}

/// A directory's names: those on the disk for certain, and the changes that a power cut may take or leave, each as a whole.
struct DiskDirectory {
    enum Change {
        case added(name: String, DiskNode)
        case removed(name: String)
        /// In one step: there is no moment without either name.
        case renamed(from: String, to: String, DiskNode)
    }

    private var durable: [String: DiskNode] = [:]
    private var pending: [Change] = []

    var hasUnflushedChanges: Bool { !pending.isEmpty }

    mutating func change(_ change: Change) { pending.append(change) }

    mutating func flush() {
        for change in pending { Self.apply(change, to: &durable) }
        pending = []
    }

    /// What `survival` leaves, in any combination: two changes of a directory may reach the disk in any order.
    func names(_ survival: inout Survival) -> [String: DiskNode] {
        var names = durable
        let decision = survival.decision(stepCount: pending.count)
        for (index, change) in pending.enumerated() where decision.keepsWhole(index) { Self.apply(change, to: &names) }
        return names
    }

    private static func apply(_ change: Change, to names: inout [String: DiskNode]) {
        switch change {
        case .added(let name, let node): names[name] = node
        case .removed(let name): names[name] = nil
        case .renamed(let from, let to, let node):
            names[from] = nil
            names[to] = node
        }
    }
}

/// What a name stands for: one of the files or directories of a `DiskModel`.
enum DiskNode: Hashable {
    case file(Int)
    case directory(Int)
}

/// What a power cut leaves of changes that were not flushed.
package enum Survival {
    case nothing
    case everything
    /// For each file and directory by itself: none, all, the first ones with the last of them torn, any of them, or any sectors of any.
    case some(SeededGenerator)

    /// What a disk writes whole.
    private static let sectorByteCount = 512

    /// The decision about one file or directory.
    struct Decision {
        /// What is left of each change, in their order.
        private let fates: [Fate]
        private var generator: SeededGenerator
        private var next = 0

        private enum Fate { case gone, whole, torn }

        init(stepCount: Int, _ survival: inout Survival) {
            switch survival {
            case .nothing: (fates, generator) = (Array(repeating: .gone, count: stepCount), SeededGenerator(seed: 0))
            case .everything: (fates, generator) = (Array(repeating: .whole, count: stepCount), SeededGenerator(seed: 0))
            case .some(var random):
                fates = Self.someFates(stepCount, &random)
                generator = SeededGenerator(seed: random.next())
                survival = .some(random)
            }
        }

        private static func someFates(_ count: Int, _ random: inout SeededGenerator) -> [Fate] {
            guard count > 0 else { return [] }
            switch Int.random(in: 0..<8, using: &random) {
            case 0: return Array(repeating: .gone, count: count)
            case 1: return Array(repeating: .whole, count: count)
            case 2, 3:
                let cut = Int.random(in: 0..<count, using: &random)
                return (0..<count).map { $0 < cut ? .whole : $0 == cut ? .torn : .gone }
            case 4:
                // All but one.
                let missing = Int.random(in: 0..<count, using: &random)
                return (0..<count).map { $0 == missing ? .gone : .whole }
            case 5, 6: return (0..<count).map { _ in Bool.random(using: &random) ? .whole : .gone }
            default: return (0..<count).map { _ in [.gone, .whole, .torn, .torn][Int.random(in: 0..<4, using: &random)] }
            }
        }

        /// For changes that cannot be torn.
        func keepsWhole(_ index: Int) -> Bool { fates[index] != .gone }

        /// To be asked for each change once, in their order.
        ///
        /// Bytes outside of a write are never touched: SQLite takes that for granted ("powersafe overwrite"), and so do we.
        mutating func survivingParts(of change: DiskFile.Change) -> [DiskFile.Change] {
            defer { next += 1 }
            switch (fates[next], change) {
            case (.gone, _): return []
            case (.whole, _): return [change]
            case (.torn, .truncation): return Bool.random(using: &generator) ? [change] : []
            case (.torn, .write(let offset, let bytes)): return sectors(of: bytes, at: offset)
            }
        }

        private mutating func sectors(of bytes: [UInt8], at offset: Int) -> [DiskFile.Change] {
            var left: [DiskFile.Change] = []
            var start = 0
            while start < bytes.count {
                let end = min(bytes.count, start + Survival.sectorByteCount - (offset + start) % Survival.sectorByteCount)
                if Bool.random(using: &generator) { left.append(.write(offset: offset + start, bytes: Array(bytes[start..<end]))) }
                start = end
            }
            return left
        }
    }

    mutating func decision(stepCount: Int) -> Decision { Decision(stepCount: stepCount, &self) }
}

/// A file system as POSIX promises it and no better.
///
/// A flush of a file makes its content durable and not its name; a flush of a directory makes the names in it durable and nothing
/// below them. A rename or a link is there or not. Modes come with the file.
package struct DiskModel {
    package enum Failure: Error {
        case unknownInode(UInt64)
        case unknownPath(String)
    }

    private var files: [DiskFile] = []
    private var directories = [DiskDirectory()]
    /// What the numbers stand for now: a number is used again when its file is gone.
    private var nodes: [UInt64: DiskNode]
    /// As the program sees them.
    private var paths: [String: DiskNode]

    package init(root: String, rootInode: UInt64) {
        nodes = [rootInode: .directory(0)]
        paths = [root: .directory(0)]
    }

    package init(_ log: DiskLog) { self.init(root: log.root, rootInode: log.rootInode) }

    /// Whether a power cut now may leave more than one state.
    package var hasUnflushedChanges: Bool {
        files.contains { $0.hasUnflushedChanges } || directories.contains { $0.hasUnflushedChanges }
    }

    package mutating func apply(_ event: DiskEvent) throws {
        switch event {
        case .mark: break
        case .fileMade(let path, let inode):
            files.append(DiskFile())
            try add(.file(files.count - 1), inode, path)
        case .directoryMade(let path, let inode):
            directories.append(DiskDirectory())
            try add(.directory(directories.count - 1), inode, path)
        case .written(let inode, let offset, let bytes): try changeFile(inode, .write(offset: offset, bytes: bytes))
        case .truncated(let inode, let byteCount): try changeFile(inode, .truncation(byteCount: byteCount))
        case .flushed(let inode):
            switch try node(inode) {
            case .file(let file): files[file].flush()
            case .directory(let directory): directories[directory].flush()
            }
        case .flushFailed(let inode):
            // Names that were not flushed stay pending: file systems with a journal stop writing after such a failure, and the next
            // flush fails too or brings them.
            if case .file(let file) = try node(inode) { files[file].failFlush() }
        case .linked(let from, let to):
            let target = try node(at: from)
            paths[to] = target
            try changeDirectory(of: to) { .added(name: $0, target) }
        case .renamed(let from, let to):
            let target = try node(at: from)
            guard Self.split(from).directory == Self.split(to).directory else { throw Failure.unknownPath(to) }
            paths[from] = nil
            paths[to] = target
            try changeDirectory(of: to) { .renamed(from: Self.split(from).name, to: $0, target) }
        case .removed(let path):
            _ = try node(at: path)
            paths[path] = nil
            try changeDirectory(of: path) { .removed(name: $0) }
        }
    }

    /// What is found after a power cut now.
    package func image(_ survival: Survival) -> DiskImage {
        var survival = survival
        // Each file once, however many names it has.
        let contents = files.map { $0.content(&survival) }
        let names = directories.map { $0.names(&survival) }
        var image = DiskImage()
        func visit(_ directory: Int, _ path: String) {
            for (name, node) in names[directory] {
                switch node {
                case .file(let file): image.files[path + name] = contents[file]
                case .directory(let below):
                    image.directories.insert(path + name)
                    visit(below, path + name + "/")
                }
            }
        }
        visit(0, "")
        return image
    }

    private mutating func add(_ node: DiskNode, _ inode: UInt64, _ path: String) throws {
        nodes[inode] = node
        paths[path] = node
        try changeDirectory(of: path) { .added(name: $0, node) }
    }

    private mutating func changeFile(_ inode: UInt64, _ change: DiskFile.Change) throws {
        guard case .file(let file) = try node(inode) else { throw Failure.unknownInode(inode) }
        files[file].change(change)
    }

    private mutating func changeDirectory(of path: String, _ change: (_ name: String) -> DiskDirectory.Change) throws {
        let (directory, name) = Self.split(path)
        guard case .directory(let index) = try node(at: directory) else { throw Failure.unknownPath(directory) }
        directories[index].change(change(name))
    }

    private func node(_ inode: UInt64) throws -> DiskNode {
        guard let node = nodes[inode] else { throw Failure.unknownInode(inode) }
        return node
    }

    private func node(at path: String) throws -> DiskNode {
        guard let node = paths[path] else { throw Failure.unknownPath(path) }
        return node
    }

    private static func split(_ path: String) -> (directory: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return ("", path) }
        return (String(path[..<slash]), String(path[path.index(after: slash)...]))
    }
}
