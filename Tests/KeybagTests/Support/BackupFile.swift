// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@testable import Keybag

/// A backup in memory.
struct BackupFile {
    var bytes: [UInt8]

    static let passwordText = "12345"

    /// What is read of a backup.
    struct Contents {
        var items: [BackupItem] = []
        var summary = BackupSummary()
    }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Writes one with the least cost that is allowed: these tests derive often.
    init(
        _ items: [BackupItem], leftBehind: BackupSummary = BackupSummary(), id: Identifier128 = .random(), record: PasscodeRecord? = nil,
        creationDate: Double = 1, password: String = passwordText
    ) throws {
        let file = Written()
        let writer = try BackupWriter(
            password: PasscodeStore.code(password), id: id, record ?? PasscodeRecord(cost: PasscodeStore.cost), creationDate: creationDate
        ) { bytes throws(KeychainFailure) in file.bytes += bytes }
        for item in items { try writer.append(item) }
        var summary = leftBehind
        summary.savedCount = items.count
        try writer.finish(summary)
        bytes = file.bytes
    }

    private final class Written {
        var bytes: [UInt8] = []
    }

    var header: BackupHeader {
        get throws(KeychainFailure) { try BackupHeader(from: source) }
    }

    func contents(password: String = passwordText) throws -> Contents {
        let reader = try BackupReader(password: PasscodeStore.code(password), source: source)
        var contents = Contents()
        contents.summary = try reader.forEachItem { contents.items.append($0) }
        return contents
    }

    /// What reading answers: `.success` or why not.
    func statusOfReading(password: String = passwordText) throws -> KeychainStatus {
        do {
            _ = try contents(password: password)
            return .success
        } catch let failure as KeychainFailure {
            return failure.status
        }
    }

    private var source: BackupSource {
        let bytes = bytes
        return { (offset, byteCount) throws(KeychainFailure) in
            let start = min(Int(offset), bytes.count)
            return Array(bytes[start..<min(start + byteCount, bytes.count)])
        }
    }
}

extension BackupItem {
    /// An item that may be in a backup.
    init(_ account: String, _ secret: Data?, _ accessibility: Accessibility = .whenUnlocked) {
        self.init(
            reference: PersistentReference(itemClass: .genericPassword, id: .random()), accessibility: accessibility,
            attributes: ItemAttributes([
                .account: .string(account), .service: .string("the combination"), .accessGroup: .string("com.example.spaceball"),
                .accessible: .string(accessibility.rawValue),
            ]), secret: secret)
    }
}
