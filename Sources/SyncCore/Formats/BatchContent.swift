// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The sealed part of a batch: what its author tells about others, and versions.
///
///     version (1) ‖ log table ‖ notes ‖ versions
///     log table = count (2) ‖ log ids (16)
///     notes     = date (8) ‖ marks ‖ statement heads ‖ counted device name
///     version   = id (16) ‖ flags (1) ‖ count (2) ‖ references (42) ‖ [content]
///     reference = log index (2) ‖ number (8) ‖ hash (16) ‖ id (16)
///     content   = item class (1) ‖ accessibility (1) ‖ counted attributes ‖ presence (1) ‖ counted secret
package struct BatchContent: Hashable, Sendable {
    package var notes: BatchNotes
    package var versions: [VersionRecord]

    package static let largestVersionCount = 512
    /// The largest content whose batch, padded and signed, has at most `BatchFrame.largestByteCount` bytes.
    package static let largestByteCount = 1_277_943
    private static let version: UInt8 = 1

    package init(notes: BatchNotes, versions: [VersionRecord]) {
        self.notes = notes
        self.versions = versions
    }

    package var encoded: [UInt8] {
        var logs = LogTable(versions.flatMap { $0.replaced.compactMap(\.origin?.log) })
        var bytes: [UInt8] = []
        bytes.append(Self.version)
        logs.append(to: &bytes)
        notes.append(to: &bytes)
        bytes.append(count: versions.count)
        for version in versions { version.append(to: &bytes, &logs) }
        return bytes
    }

    package init(_ bytes: [UInt8]) throws(FormatError) {
        var reader = FieldReader(bytes)
        try reader.version(Self.version)
        let logs = try LogTable(from: &reader)
        notes = try BatchNotes(from: &reader)
        let count = try reader.count(ofElementsOf: VersionRecord.smallestByteCount, atMost: Self.largestVersionCount)
        versions = []
        versions.reserveCapacity(count)
        for _ in 0..<count { versions.append(try VersionRecord(from: &reader, logs)) }
        try reader.end()
    }
}

/// What the author of a batch knew of others.
package struct BatchNotes: Hashable, Sendable {
    /// When the batch was sealed, by the author's clock.
    ///
    /// For people only.
    package var seconds: Double
    /// The marks that moved since the author's last batch.
    package var marks: [LogMark]
    /// The heads of the statements that the author counts.
    package var heads: [StatementHash]
    package var deviceName: [UInt8]

    package static let largestMarkCount = 512
    package static let largestHeadCount = 256
    package static let largestNameByteCount = 256

    package init(seconds: Double, marks: [LogMark] = [], heads: [StatementHash] = [], deviceName: [UInt8] = []) {
        self.seconds = seconds
        self.marks = marks
        self.heads = heads
        self.deviceName = deviceName
    }

    func append(to bytes: inout [UInt8]) {
        bytes.append(seconds: seconds)
        bytes.append(marks: marks)
        bytes.append(count: heads.count)
        for head in heads { bytes.append(head) }
        bytes.append(lengthPrefixed: deviceName)
    }

    init(from reader: inout FieldReader) throws(FormatError) {
        seconds = try reader.seconds()
        marks = try reader.marks(atMost: Self.largestMarkCount)
        heads = []
        for _ in 0..<(try reader.count(ofElementsOf: 32, atMost: Self.largestHeadCount)) { heads.append(try reader.hash()) }
        deviceName = try reader.counted(atMost: Self.largestNameByteCount)
    }
}

extension [UInt8] {
    mutating func append(marks: [LogMark]) {
        append(count: marks.count)
        for mark in marks {
            append(mark.log)
            append(mark.device)
            append(littleEndian: mark.number)
            append(mark.previous)
            append(mark.hash)
            append(contentsOf: mark.signature)
        }
    }
}

extension LogMark {
    static let byteCount = 168
}

extension FieldReader {
    mutating func marks(atMost limit: Int) throws(FormatError) -> [LogMark] {
        var marks: [LogMark] = []
        for _ in 0..<(try count(ofElementsOf: LogMark.byteCount, atMost: limit)) {
            let log = LogID(try identifier())
            let device = DeviceID(try identifier())
            let number = try uint64()
            let previous = try hash()
            let hash = try hash()
            guard number > 0 else { throw .malformed }
            let signature = try bytes(LogMark.signatureByteCount)
            marks.append(LogMark(log: log, device: device, number: number, previous: previous, hash: hash, signature: signature))
        }
        return marks
    }
}

/// The logs that references name by index.
struct LogTable {
    private let logs: [LogID]
    private var indices: [LogID: UInt16] = [:]

    init(_ logs: [LogID]) {
        self.logs = Set(logs).sorted()
        for (index, log) in self.logs.enumerated() { indices[log] = UInt16(clamping: index) }
    }

    init(from reader: inout FieldReader) throws(FormatError) {
        var logs: [LogID] = []
        for _ in 0..<(try reader.count(ofElementsOf: 16)) {
            let log = LogID(try reader.identifier())
            // The only encoding of a set: ascending.
            if let last = logs.last, !(last < log) { throw .malformed }
            logs.append(log)
        }
        self.logs = logs
    }

    func append(to bytes: inout [UInt8]) {
        bytes.append(count: logs.count)
        for log in logs { bytes.append(log) }
    }

    func append(_ origin: Origin, to bytes: inout [UInt8]) {
        bytes.append(littleEndian: indices[origin.log] ?? UInt16.max)
        bytes.append(littleEndian: origin.number)
        bytes.append(origin.hash)
    }

    func origin(from reader: inout FieldReader) throws(FormatError) -> Origin {
        let index = Int(try reader.uint16())
        guard index < logs.count else { throw .malformed }
        let number = try reader.uint64()
        guard number > 0 else { throw .malformed }
        return Origin(log: logs[index], number: number, hash: try reader.identifier())
    }
}

/// A version in a batch.
package struct VersionRecord: Hashable, Sendable {
    package let id: SyncVersionID
    /// The published versions that this one replaces.
    package let replaced: [VersionReference]
    /// Nil for a deletion.
    package let content: SyncContent?

    /// A version that replaces more is followed by deletions that replace the rest.
    package static let largestReplacedCount = 2_048
    static let smallestByteCount = 19
    static let referenceByteCount = 42
    private static let contentFlag: UInt8 = 1

    package init(id: SyncVersionID, replaced: [VersionReference], content: SyncContent?) {
        self.id = id
        self.replaced = replaced
        self.content = content
    }

    func append(to bytes: inout [UInt8], _ logs: inout LogTable) {
        bytes.append(id)
        bytes.append(content == nil ? 0 : Self.contentFlag)
        let published = replaced.compactMap { reference in reference.origin.map { (reference.id, $0) } }
        bytes.append(count: published.count)
        for (id, origin) in published {
            logs.append(origin, to: &bytes)
            bytes.append(id)
        }
        content?.append(to: &bytes)
    }

    init(from reader: inout FieldReader, _ logs: LogTable) throws(FormatError) {
        id = SyncVersionID(try reader.identifier())
        let flags = try reader.byte()
        guard flags & ~Self.contentFlag == 0 else { throw .newer }
        let count = try reader.count(ofElementsOf: Self.referenceByteCount, atMost: Self.largestReplacedCount)
        var replaced: [VersionReference] = []
        replaced.reserveCapacity(count)
        for _ in 0..<count {
            let origin = try logs.origin(from: &reader)
            replaced.append(VersionReference(id: SyncVersionID(try reader.identifier()), origin: origin))
        }
        self.replaced = replaced
        content = flags & Self.contentFlag == 0 ? nil : try SyncContent(from: &reader)
    }
}

extension SyncContent {
    /// The largest sum of attributes and secret that synchronizes.
    package static let largestByteCount = 1_048_576

    var byteCount: Int { attributes.count + (secret?.count ?? 0) }

    func append(to bytes: inout [UInt8]) {
        bytes.append(itemClass.code)
        bytes.append(accessibility.code)
        bytes.append(lengthPrefixed: attributes)
        bytes.append(secret == nil ? 0 : 1)
        bytes.append(lengthPrefixed: secret ?? [])
    }

    init(from reader: inout FieldReader) throws(FormatError) {
        guard let itemClass = ItemClass(code: try reader.byte()), itemClass.isPassword,
            let accessibility = ItemAccessibility(code: try reader.byte()), !accessibility.isThisDeviceOnly
        else { throw .malformed }
        let attributes = try reader.counted(atMost: Self.largestByteCount)
        let presence = try reader.byte()
        let secret = try reader.counted(atMost: Self.largestByteCount - attributes.count)
        guard presence == 1 || (presence == 0 && secret.isEmpty) else { throw .malformed }
        self.init(itemClass: itemClass, accessibility: accessibility, attributes: attributes, secret: presence == 1 ? secret : nil)
    }
}
