// SPDX-License-Identifier: Apache-2.0
package import KeychainCore
internal import KeychainStore

/// The content of a keychain that another program has changed, for a person who decides whether to accept it.
package struct ContentReport: Sendable {
    package let problem: StateProblem
    /// The number of changes that the file counts; nil if its record of changes was altered.
    package let changeCount: UInt64?
    package let itemCount: Int
    /// The latest modification date of the items that can be read, in seconds since 2001-01-01 00:00:00 UTC; nil if there is none.
    package let latestModificationDate: Double?
}

extension LocalKeychain {
    /// Accepts the content of the keychain's file after another program has changed it: an older copy was put back, or rows were removed.
    ///
    /// From then on the keychain opens again, and what is missing stays missing. Items that were altered stay unreadable.
    ///
    /// - Parameter applying: Whether to accept it. Otherwise the report describes the content, and nothing is changed.
    /// - Returns: The problem and the content; nil if the content is what the keychain wrote last.
    /// - Throws: `.itemNotFound` if there is no keychain, `.unimplemented` for a keychain in memory, and the errors of opening the keychain.
    package func acceptContent(applying: Bool) throws(KeychainFailure) -> ContentReport? {
        guard let backend = backend as? FileKeychainBackend else { throw KeychainFailure.requiresFile() }
        return try addingContext { () throws(KeychainFailure) in
            closeCurrent()
            let opened = try backend.openAcceptingContent()
            defer { backend.close(opened) }
            let store = try opened.fileStore()
            guard let problem = try store.stateProblem(readingAllRows: true) else { return nil }
            let report = ContentReport(
                problem: problem, changeCount: try store.changeCount().map(StoreState.changes),
                itemCount: try store.read { reading throws(KeychainFailure) in try reading.itemCount() },
                latestModificationDate: try opened.keychain.latestModificationDate())
            if applying { try store.acceptContent() }
            return report
        }
    }
}
