// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import Testing

@testable import Keybag

@Suite("A backup")
struct BackupTests {
    @Test(
        "What was written is read, whatever its size, also around the border of a chunk",
        arguments: [0, 200_000] + Array(65_300...65_420))
    func roundTrip(_ byteCount: Int) throws {
        let secret = Data((0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let contents = try BackupFile([BackupItem("large", secret), BackupItem("small", nil, .afterFirstUnlock)]).contents()
        #expect(contents.items.map(\.secret) == [secret, nil])
        #expect(contents.items.map(\.accessibility) == [.whenUnlocked, .afterFirstUnlock])
    }

    @Test("It says how many items stayed behind, and why")
    func summary() throws {
        var summary = BackupSummary()
        summary.thisDeviceOnlyCount = 1
        summary.constrainedCount = 2
        summary.unreadableCount = 3
        let contents = try BackupFile([BackupItem("one", Data())], leftBehind: summary).contents()
        summary.savedCount = 1
        #expect(contents.summary == summary)
    }

    @Test("Another password does not open it", arguments: ["1234", "123456", "12345 "])
    func otherPassword(_ password: String) throws {
        let file = try BackupFile([BackupItem("one", Data("secret".utf8))])
        #expect(try file.statusOfReading(password: password) == .authFailed)
        #expect(try file.statusOfReading() == .success)
    }

    @Test("No name and no secret shows in it, and two of the same items have nothing in common")
    func sealed() throws {
        let items = [BackupItem("an account to be hidden", Data("a secret to be hidden".utf8))]
        let (one, other) = (try BackupFile(items).bytes, try BackupFile(items).bytes)
        for text in ["an account", "a secret", "com.example", "the combination"] {
            #expect(Data(one).firstRange(of: Data(text.utf8)) == nil)
        }
        // Behind the fields that are the same in all.
        #expect(zip(one, other).dropFirst(86).count { $0 == $1 } < 40)
    }

    @Test("An item that must not leave the device is not written, and neither is one that could not be read again")
    func refusedItems() throws {
        let deviceOnly = BackupItem("one", Data(), .whenUnlockedThisDeviceOnly)
        let bare = BackupItem(
            reference: PersistentReference(itemClass: .genericPassword, id: .random()), accessibility: .whenUnlocked,
            attributes: ItemAttributes(), secret: nil)
        for item in [deviceOnly, bare] {
            #expect(throws: KeychainFailure(.internal, "")) { try BackupFile([item]) }
        }
    }

    @Test("A failure to read is told as such, and not as damage")
    func failingSource() throws {
        let failing: BackupSource = { (_, _) throws(KeychainFailure) in throw KeychainFailure(.inputOutput, "the disk") }
        #expect(throws: KeychainFailure(.inputOutput, "")) { try BackupHeader(from: failing) }
    }
}
