// SPDX-License-Identifier: Apache-2.0
internal import Foundation
internal import KeychainServices

extension Valet {
    /// A stream with an element soon after any process has changed something that this valet could see.
    ///
    ///     let changes = valet.changes
    ///     reload()
    ///     for await _ in changes { reload() }
    ///
    /// It reports changes from the moment at which this property is read; so read it before the values. An element says "look again": it
    /// stands for all changes since the last one, and there can be one without a change that matters, for example when another valet was changed.
    /// Locking and unlocking are changes too, except the automatic lock after a time, which shows at the next change or read. The stream goes on
    /// while the keychain is locked, and if it is created, replaced, or restored. It ends with its task, and only one task can use it. It costs
    /// nothing while nothing changes, but a damaged keychain is looked at once a second. Without a stream in use nothing runs.
    ///
    /// Reading this property opens the keychain, which takes about as long as reading a value. In a forked process, and where there is no place for a
    /// keychain, the stream has no elements.
    ///
    /// On Linux the kernel reports the changes, also those of other processes, after a few milliseconds. It does not report a file system that is mounted
    /// over a directory of the keychain, or a symbolic link in its path that is changed: start the program after its volume is there. On Apple
    /// platforms, whose keychain does not report changes, the items of the valet are compared every 5 seconds.
    public var changes: AsyncStream<Void> { keychain.changes }
}

extension SecureEnclaveValet {
    /// A stream with an element soon after any process has changed something that this valet could see; see ``Valet/changes``.
    ///
    /// It never prompts the user.
    public var changes: AsyncStream<Void> { keychain.values.changes }
}

@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension SinglePromptSecureEnclaveValet {
    /// A stream with an element soon after any process has changed something that this valet could see; see ``Valet/changes``.
    ///
    /// It never prompts the user.
    public var changes: AsyncStream<Void> { keychain.values.changes }
}

extension NamespaceKeychain {
    fileprivate var changes: AsyncStream<Void> { keychainChanges() ?? polledChanges(interval: .seconds(5)) }

    /// Compares the items at an interval, for a keychain that does not report changes.
    func polledChanges(interval: Duration) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let first = fingerprint()
        let polling = Task {
            var last = first
            while true {
                try await Task.sleep(for: interval)
                let current = try await withBlockingCalls { fingerprint() }
                if current != last { continuation.yield() }
                last = current
            }
        }
        continuation.onTermination = { _ in polling.cancel() }
        return stream
    }

    /// The accounts and modification dates of all items, and the status of the search.
    private func fingerprint() -> Set<[String]> {
        let query = items.with(PromptOptions.never.entries).entries.merging([
            kSecMatchLimit as String: kSecMatchLimitAll as String, kSecReturnAttributes as String: true,
        ]) { _, new in new }
        let (status, found) = SecItemClient.copyAllAttributes(matching: query)
        let items = (found ?? []).map { item in
            let date = item[kSecAttrModificationDate as String] as? Date
            return ["\(item[kSecAttrAccount as String] ?? "")", "\(date?.timeIntervalSinceReferenceDate ?? 0)"]
        }
        return Set(items + [["\(status)"]])
    }
}
