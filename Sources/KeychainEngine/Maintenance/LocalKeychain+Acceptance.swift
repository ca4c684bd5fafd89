// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore

/// The content of a keychain that another program has changed, for a person who decides whether to accept it.
package struct ContentReport: Sendable {
    package let problem: StateProblem
    /// The number of changes that the file counts; nil if its record of changes was altered.
    package let changeCount: UInt64?
    package let itemCount: Int
    /// How many of them cannot be authenticated.
    package let damagedItemCount: Int
    /// The latest modification date of the items that can be read, in seconds since 2001-01-01 00:00:00 UTC; nil if there is none.
    package let latestModificationDate: Double?
    /// Whether the keybag in the file is not the one stored last, so that the passcode, if there is one, is that of an earlier time.
    package let isKeybagReplaced: Bool
    package let isPasscodeSet: Bool
}

extension LocalKeychain {
    /// Accepts the content of the keychain's file after another program has changed it: an older copy was put back, or rows were removed.
    ///
    /// From then on the keychain opens again, and what is missing stays missing. Items that were altered stay unreadable.
    ///
    /// - Parameters:
    ///   - applying: Whether to accept it. Otherwise the report describes the content, and nothing is changed.
    ///   - acceptingKeybag: Whether a keybag that is not the one stored last may be accepted: an attacker may know its passcode.
    /// - Returns: The problem and the content; nil if the content is what the keychain wrote last.
    /// - Throws: `.itemNotFound` if there is no keychain, `.unimplemented` for a keychain in memory, a failure with the cause
    ///   `.unexpectedState(.keybagReplaced)` if the keybag is not accepted, and the errors of opening the keychain.
    package func acceptContent(applying: Bool, acceptingKeybag: Bool = false) throws(KeychainFailure) -> ContentReport? {
        guard let backend = backend as? FileKeychainBackend else { throw KeychainFailure.requiresFile() }
        return try addingContext { () throws(KeychainFailure) in
            close()
            let opened = try backend.openAcceptingContent()
            defer { backend.close(opened) }
            do throws(KeychainFailure) {
                return try Self.acceptContent(of: opened, applying: applying, acceptingKeybag: acceptingKeybag)
            } catch {
                // No row that cannot be read can be accepted, and no other command opens a content that is not accepted.
                guard error.isDamage, error.remedy == .repair || error.remedy == .saveReadable else { throw error }
                throw error.withRemedy(.saveRefused)
            }
        }
    }

    private static func acceptContent(
        of opened: OpenKeychain, applying: Bool, acceptingKeybag: Bool
    ) throws(KeychainFailure) -> ContentReport? {
        let store = try opened.fileStore()
        let keybag = opened.keybag.usedCopy
        let found = try store.stateProblem(using: keybag, readingAllRows: true)
        guard found != .schemaAltered else { throw SQLiteItemStore.failure(.schemaAltered) }
        guard try !store.integrityProblems().contains(where: \.preventsWriting) else {
            let context = found.map { "the keychain is not as it was left: \($0); " } ?? ""
            throw KeychainFailure(
                .notAvailable, "\(context)a part of the file is damaged, so its content cannot be accepted", subject: .store,
                cause: .damaged,
                isDamage: true, remedy: .saveReadable)
        }
        guard let problem = found else { return nil }
        let rows = try opened.keychain.verify(underAnyKeybag: true)
        let report = ContentReport(
            problem: problem, changeCount: try store.changeCount().map(StoreState.changes),
            itemCount: try store.read { reading throws(KeychainFailure) in try reading.itemCount() },
            damagedItemCount: rows.findings.count + rows.damagedPageRowCount,
            latestModificationDate: try opened.keychain.latestModificationDate(),
            isKeybagReplaced: try !store.isStoredLast(keybag.copies), isPasscodeSet: opened.keybag.isPasscodeSet)
        guard applying else { return report }
        guard acceptingKeybag || !report.isKeybagReplaced else { throw SQLiteItemStore.failure(.keybagReplaced) }
        try store.acceptContent(using: keybag)
        return report
    }
}
