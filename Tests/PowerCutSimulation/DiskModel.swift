// SPDX-License-Identifier: Apache-2.0
internal import Foundation

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
    package var isUncertain: Bool {
        files.contains { $0.hasUncertainSteps } || directories.contains { $0.hasUncertainSteps }
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
