// SPDX-License-Identifier: Apache-2.0
internal import Foundation
import KeychainSystem
package import KeychainTestSupport

/// A change below the recorded root, or a mark of the program.
package enum DiskEvent {
    case mark(String)
    case fileMade(path: String, inode: UInt64)
    case directoryMade(path: String, inode: UInt64)
    case written(inode: UInt64, offset: Int, bytes: [UInt8])
    case truncated(inode: UInt64, byteCount: Int)
    case flushed(inode: UInt64)
    /// The program saw the failure. The data may be on the disk or not, and no later flush writes it.
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
            // The buffer was just enlarged.
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
        // As one buffer: hashing byte by byte would take most of the time of a run.
        unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    }
}

/// The content of a file: the durable part, and changes that a power cut may lose.
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
        /// Its flush failed: no later flush writes it.
        case lost
        case durable
    }

    /// The durable content, up to the first change that is not durable.
    private var durable = FileContent()
    private var steps: [Step] = []

    var hasUnflushedChanges: Bool { steps.contains { $0.state != .durable } }

    mutating func change(_ change: Change) { steps.append(Step(change: change, state: .pending)) }

    mutating func flush() {
        for index in steps.indices where steps[index].state == .pending { steps[index].state = .durable }
        // Then the change is part of the content and need not be kept.
        let certain = steps.prefix { $0.state == .durable }
        for step in certain { durable.apply(step.change) }
        steps.removeFirst(certain.count)
    }

    mutating func failFlush() {
        for index in steps.indices where steps[index].state == .pending { steps[index].state = .lost }
    }

    /// Returns the content after a power cut, with the unflushed changes that `survival` selects.
    ///
    /// Surviving changes are applied in their order: even if a disk writes the newer of two first, it keeps the newer.
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

/// The names in a directory: the durable ones, and changes that a power cut may lose, each as a whole.
struct DiskDirectory {
    enum Change {
        case added(name: String, DiskNode)
        case removed(name: String)
        /// Atomic: at every moment one of the names exists.
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

    /// Returns the names after a power cut.
    ///
    /// Any combination of changes can survive, since they reach the disk in any order.
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

/// The file or directory of a `DiskModel` to which a name refers.
enum DiskNode: Hashable {
    case file(Int)
    case directory(Int)
}

/// The unflushed changes that survive a power cut.
package enum Survival {
    case nothing
    case everything
    /// A random choice for each file and directory: none, all, a prefix whose last change is torn, any changes, or any sectors.
    case some(SeededGenerator)

    /// The unit that a disk writes atomically.
    private static let sectorByteCount = 512

    /// The decision about one file or directory.
    struct Decision {
        /// The surviving part of each change, in order.
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
                // All changes except one.
                let missing = Int.random(in: 0..<count, using: &random)
                return (0..<count).map { $0 == missing ? .gone : .whole }
            case 5, 6: return (0..<count).map { _ in Bool.random(using: &random) ? .whole : .gone }
            default: return (0..<count).map { _ in [.gone, .whole, .torn, .torn][Int.random(in: 0..<4, using: &random)] }
            }
        }

        /// For changes that cannot be torn.
        func keepsWhole(_ index: Int) -> Bool { fates[index] != .gone }

        /// Call this once for each change, in order.
        ///
        /// Bytes outside of a write are unchanged, as SQLite assumes too ("powersafe overwrite").
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

/// A file system that guarantees only what POSIX does.
///
/// Flushing a file makes its content durable, but not its name. Flushing a directory makes the names in it durable, but not the contents
/// of the files. Renames and links are atomic. Modes are durable with the file.
package struct DiskModel {
    package enum Failure: Error {
        case unknownInode(UInt64)
        case unknownPath(String)
    }

    private var files: [DiskFile] = []
    private var directories = [DiskDirectory()]
    /// The current files by inode number: numbers are reused after their file was removed.
    private var nodes: [UInt64: DiskNode]
    /// As the program sees them.
    private var paths: [String: DiskNode]

    package init(root: String, rootInode: UInt64) {
        nodes = [rootInode: .directory(0)]
        paths = [root: .directory(0)]
    }

    package init(_ log: DiskLog) { self.init(root: log.root, rootInode: log.rootInode) }

    /// Whether more than one state is possible after a power cut now.
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

    /// Returns the state after a power cut now.
    package func image(_ survival: Survival) -> DiskImage {
        var survival = survival
        // Each file once, even if it has several names.
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
