// SPDX-License-Identifier: Apache-2.0
import KeychainCore

/// What the statuses of a keychain mean where a backup is concerned.
enum BackupFailure {
    /// While a backup is written.
    static func translated<Result>(
        to path: String, _ body: () throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            switch error.status {
            case .itemNotFound:
                throw CommandFailure(
                    .notFound, "there is no keychain yet, so there is nothing to save", advice: "The first secret that is stored makes it.")
            case .duplicateItem: throw alreadyThere(path)
            case .parameter: throw CommandFailure(.usage, error.reason, advice: "Nothing was written.")
            default: throw CommandFailure(error)
            }
        }
    }

    /// While a backup is read.
    static func translated<Result>(
        from path: String, _ body: () throws(KeychainFailure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            switch error.status {
            case .itemNotFound:
                throw CommandFailure(.notFound, "there is no file \(ItemListing.printable(path))", advice: "Check the name.")
            case .authFailed:
                throw CommandFailure(.unavailable, error.reason, advice: "Nothing was restored. Run the command again with the right one.")
            case .decode where !error.isDamage:
                throw CommandFailure(.damaged, error.reason, advice: "Nothing was restored. Take another copy of the backup.")
            case .parameter: throw CommandFailure(.usage, error.reason, advice: "Nothing was restored.")
            case .notAvailable where error.remedy == nil && error.reason.contains(path):
                throw CommandFailure(.unavailable, error.reason, advice: "Nothing was restored. Check that the file can be read.")
            default: throw CommandFailure(error)
            }
        }
    }

    static func alreadyThere(_ path: String) -> CommandFailure {
        CommandFailure(
            .alreadyThere, "\(ItemListing.printable(path)) is there already, and nothing was written",
            advice: "Choose another name, or replace it with --force.")
    }
}

extension CommandSession {
    /// Throws while not every secret can be read or written.
    func requireUnlocked() throws(CommandFailure) {
        let state = try performOnLock { keychain throws(KeychainFailure) in try keychain.sessionStatus() }.state
        guard state == .unlocked else { throw CommandFailure(KeychainFailure(.interactionNotAllowed, "the keychain is locked")) }
    }
}
