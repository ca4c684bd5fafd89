// SPDX-License-Identifier: Apache-2.0
internal import Foundation

/// The recorded changes of a program, in order.
package struct DiskLog {
    package enum Failure: Error {
        case cutOff(atByte: Int)
        case unknownEvent(UInt32)
        /// The program made a change that the model does not know, so the images would be wrong.
        case unknownChange(call: String, path: String)
    }

    /// The path below which changes were recorded.
    package let root: String
    package let rootInode: UInt64
    package let events: [DiskEvent]
    /// Every flush, in order.
    package let flushPoints: [FlushPoint]

    package init(contentsOfFile path: String) throws { try self.init(Data(contentsOf: URL(filePath: path))) }

    init(_ data: Data) throws {
        var reader = Reader(data: data)
        var root = ""
        var rootInode: UInt64 = 0
        var events: [DiskEvent] = []
        var flushes = FlushCounter()
        while !reader.isAtEnd {
            let record = try reader.record()
            let inode = record.inode
            switch record.event {
            case 1: (root, rootInode) = (record.path, inode)
            case 2:
                events.append(.mark(record.path))
                flushes.note(mark: record.path)
            case 3: events.append(.fileMade(path: record.path, inode: inode))
            case 4: events.append(.directoryMade(path: record.path, inode: inode))
            case 5: events.append(.written(inode: inode, offset: record.position, bytes: record.bytes))
            case 6: events.append(.truncated(inode: inode, byteCount: record.position))
            case 7, 8:
                events.append(record.event == 7 ? .flushed(inode: inode) : .flushFailed(inode: inode))
                flushes.noteFlush(of: record.path)
            case 9: events.append(.linked(from: record.path, to: record.second))
            case 10: events.append(.renamed(from: record.path, to: record.second))
            case 11: events.append(.removed(path: record.path))
            case 12: throw Failure.unknownChange(call: record.path, path: record.second)
            default: throw Failure.unknownEvent(record.event)
            }
        }
        self.root = root
        self.rootInode = rootInode
        self.events = events
        flushPoints = flushes.points
    }

    /// A record: event, three byte counts, inode, position; then path, second path, bytes.
    private struct Reader {
        let data: Data
        private var position = 0

        init(data: Data) {
            self.data = data
        }

        struct Record {
            let event: UInt32
            let inode: UInt64
            let position: Int
            let path: String
            let second: String
            let bytes: [UInt8]
        }

        var isAtEnd: Bool { position == data.count }

        mutating func record() throws -> Record {
            let event = try UInt32(number(byteCount: 4))
            let (pathCount, secondCount, byteCount) = try (number(byteCount: 4), number(byteCount: 4), number(byteCount: 4))
            let (inode, offset) = try (number(byteCount: 8), number(byteCount: 8))
            return Record(
                event: event, inode: inode, position: Int(offset), path: String(decoding: try take(Int(pathCount)), as: UTF8.self),
                second: String(decoding: try take(Int(secondCount)), as: UTF8.self), bytes: [UInt8](try take(Int(byteCount))))
        }

        private mutating func take(_ count: Int) throws -> Data {
            guard count <= data.count - position else { throw Failure.cutOff(atByte: position) }
            defer { position += count }
            return data[data.startIndex + position..<data.startIndex + position + count]
        }

        /// Little-endian, as on all supported machines.
        private mutating func number(byteCount: Int) throws -> UInt64 {
            try take(byteCount).reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
    }
}

/// The contents of a disk at one moment: directories, and files with their contents.
package struct DiskImage: Hashable {
    var directories: Set<String> = []
    var files: [String: FileContent] = [:]

    package init() {}

    /// Reads a directory.
    package init(below root: String) throws {
        for path in try FileManager.default.subpathsOfDirectory(atPath: root) {
            let attributes = try FileManager.default.attributesOfItem(atPath: "\(root)/\(path)")
            if attributes[.type] as? FileAttributeType == .typeDirectory {
                directories.insert(path)
            } else {
                var content = FileContent()
                content.apply(.write(offset: 0, bytes: [UInt8](try Data(contentsOf: URL(filePath: "\(root)/\(path)")))))
                files[path] = content
            }
        }
    }

    /// The image without -shm files: SQLite does not flush them, and rebuilds them after a restart.
    package var withoutSharedMemory: DiskImage {
        var image = self
        for path in files.keys where path.hasSuffix("-shm") { image.files[path] = nil }
        return image
    }

    /// Replaces the contents of `root` by the image.
    package func write(to root: String) throws {
        let manager = FileManager.default
        for name in try manager.contentsOfDirectory(atPath: root) { try manager.removeItem(atPath: "\(root)/\(name)") }
        // Sorted, so that a directory precedes its contents.
        for directory in directories.sorted() {
            try manager.createDirectory(
                atPath: "\(root)/\(directory)", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        }
        for (path, content) in files {
            let made = manager.createFile(
                atPath: "\(root)/\(path)", contents: Data(content.bytes), attributes: [.posixPermissions: 0o600])
            guard made else { throw CocoaError(.fileWriteUnknown) }
        }
    }

    /// The files as text, by their paths.
    package var contents: [String: String] { files.mapValues { String(decoding: $0.bytes, as: UTF8.self) } }

    /// Names and sizes, for messages.
    package var summary: String {
        files.map { "\($0.key) (\($0.value.bytes.count))" }.sorted().joined(separator: ", ")
    }
}
