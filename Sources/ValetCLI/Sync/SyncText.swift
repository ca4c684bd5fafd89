// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainSystem

/// Words and numbers in the output of these commands.
enum SyncText {
    static func items(_ count: Int) -> String { count == 1 ? "1 item is" : "\(count) items are" }

    /// What follows a message about something that was not sent or read.
    static let later = "`valet sync run` and `valet sync now` try again."

    /// How many digits of an identifier tell devices of one name apart.
    static let shortIdentifierLength = 8

    static func path(_ storage: any SyncStorage) -> String { ItemListing.escapingUnprintable(storage.location) }

    static func name(_ name: String?) -> String { name.map { ItemListing.escapingUnprintable($0) } ?? "an unnamed device" }

    /// A text with a full stop, unless it ends with a question.
    static func sentence(_ text: String) -> String { text.hasSuffix("?") ? text : text + "." }

    /// What was not sent yet.
    static func sent(_ status: SyncStatus) -> String {
        guard status.unsentCount > 0 else { return "Sent: all." }
        let (changes, wait) = status.unsentCount == 1 ? ("1 change", "waits") : ("\(status.unsentCount) changes", "wait")
        return "Sent: all but \(changes)" + (status.isWaitingForUnlock ? ", which \(wait) for `valet unlock`." : ".")
    }

    /// Why changes are held back although nothing is left to read; nil if they are not.
    static func wait(_ status: SyncStatus) -> String? {
        guard status.isWaitingForStatements else { return nil }
        return "Waiting, for an hour at most: a part of what was stated about the devices has not arrived in the folder."
    }

    /// The items that the circle does not have any more; nil if there are none.
    static func unshared(_ count: Int) -> String? {
        guard count > 0 else { return nil }
        return
            "\(count == 1 ? "1 item of this device is" : "\(count) items of this device are") not in the circle any more: `valet sync unshared`."
    }

    /// Names in a sentence.
    static func list(_ names: [String]) -> String {
        guard names.count > 1, let last = names.last else { return names.first ?? "" }
        return names.dropLast().joined(separator: ", ") + " and " + last
    }

    /// A line for each item: its key, and the options that select its valet.
    static func lines(_ items: some Collection<SyncItem>) -> [String] {
        let keys = items.map(key)
        let width = keys.map(\.count).max() ?? 0
        return zip(items, keys).map { item, key in
            "  " + key.padding(toLength: width, withPad: " ", startingAt: 0) + "  " + options(item)
        }
    }

    /// The key of an item, and the options that select its valet.
    static func item(_ item: SyncItem?) -> String { item.map { key($0) + "  " + options($0) } ?? "locked or damaged" }

    private static func key(_ item: SyncItem) -> String { ItemListing.escapingUnprintable(item.account ?? item.label ?? "") }

    private static func options(_ item: SyncItem) -> String {
        let place = ItemPlace(
            accessGroup: item.accessGroup ?? "", service: item.service ?? "", accessibility: item.accessibility, isSynchronizable: true)
        return "(" + (PlaceDescription(place).options ?? ItemListing.escapingUnprintable(place.service)) + ")"
    }

    /// Local date and time to the minute.
    static func time(_ date: Date) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.dateFormat = "yyyy-MM-dd HH:mm"
        return formatter.string(from: date)
    }

    /// Parses a code or a kit.
    static func secret(
        _ typed: borrowing Passcode, as parse: (borrowing SecretBytes) throws(SyncFailure) -> SyncSecret
    ) throws(CommandFailure) -> SyncSecret {
        do throws(SyncFailure) { return try parse(typed.bytes) } catch { throw CommandFailure(error) }
    }

    static func write(kit: SyncSecret, afterAction action: String) throws(CommandFailure) {
        StandardError.write("Recovery kit: write it down and store it separately. With it and the folder, a person can read everything.")
        CurrentProcess.ignoreBrokenPipeSignal()
        do throws(Errno) {
            try FileDescriptor.standardOutput.writeAll(kit.textBytes.secret)
            try FileDescriptor.standardOutput.writeAll("\n".utf8)
        } catch {
            throw CommandFailure(
                .unavailable, "\(action), but the recovery kit could not be written to standard output: \(error)",
                advice: "The kit was lost. Make another with `valet sync kit`.")
        }
    }
}
