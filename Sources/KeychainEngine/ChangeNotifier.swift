// SPDX-License-Identifier: Apache-2.0
internal import Keybag
package import KeychainCore
internal import KeychainStore
internal import KeychainSystem
internal import Synchronization

/// Tells the observers in this process when the content of a keychain has changed, or when it was locked or unlocked.
///
/// Nothing is watched while there is no observer. One watch serves all of them.
final class ChangeNotifier: Sendable {
    /// What was found when the keychain was last looked at.
    private enum Content: Equatable {
        case version(ContentVersion, LockState)
        case noKeychain
        /// It is damaged, refused, or cannot be reached. A reader finds out why.
        case unreadable
    }

    private struct State {
        var observers: [UInt64: @Sendable () -> Void] = [:]
        var lastIdentifier: UInt64 = 0
        var watch: (any ContentWatch)?
        var known = Content.unreadable
    }

    private let state = Mutex(State())

    /// Adds an observer, and begins to watch with the first one.
    ///
    /// A change after this returns is reported.
    func observe(
        _ keychain: LocalKeychain, _ onChange: @escaping @Sendable () -> Void
    ) throws(KeychainFailure) -> any ChangeObservation {
        let identifier = try state.withLock { state throws(KeychainFailure) in
            if state.watch == nil {
                state.watch = try keychain.backend.watchContent { [weak self, weak keychain] event in
                    guard let self, let keychain else { return .changed }
                    return notice(event, in: keychain)
                }
                // After the watch has begun, so that no change is between the two.
                state.known = Self.content(of: keychain)
            }
            state.lastIdentifier += 1
            state.observers[state.lastIdentifier] = onChange
            return state.lastIdentifier
        }
        return Observation { [weak self] in self?.remove(identifier) }
    }

    private func remove(_ identifier: UInt64) {
        let unused = state.withLock { state -> (any ContentWatch)? in
            state.observers[identifier] = nil
            guard state.observers.isEmpty else { return nil }
            defer { state.watch = nil }
            return state.watch
        }
        unused?.cancel()
    }

    /// Calls the observers if the content has changed.
    private func notice(_ event: ContentEvent, in keychain: LocalKeychain) -> ContentFinding {
        // An open connection may lead to the file that was replaced.
        if event == .replaced { keychain.close() }
        let content = Self.content(of: keychain)
        let observers = state.withLock { state in
            defer { state.known = content }
            // A keychain that was unreadable before is reported once, however often it is replaced.
            let isReplaced = event == .replaced && content != .unreadable
            return isReplaced || content != state.known ? Array(state.observers.values) : nil
        }
        for onChange in observers ?? [] { onChange() }
        return content == .unreadable ? .unreadable : observers == nil ? .unchanged : .changed
    }

    private static func content(of keychain: LocalKeychain) -> Content {
        do throws(KeychainFailure) {
            // An older keybag may have no passcode, and would seem unlocked: then an unlock would be no change.
            return try keychain.performOnCurrentKeybag { opened throws(KeychainFailure) in
                let version = try keychain.backend.contentVersion(of: opened)
                return .version(version, try opened.keybag.lockState(at: version.lockEpoch))
            }
        } catch {
            // While this look could not open the file, another thread may have kept a connection to the file that was there before. The calls
            // after this must find what the look has found, because nothing is reported until that changes.
            keychain.close()
            return error.status == .itemNotFound ? .noKeychain : .unreadable
        }
    }

    private final class Observation: ChangeObservation {
        private let end: @Sendable () -> Void

        init(_ end: @escaping @Sendable () -> Void) {
            self.end = end
        }

        deinit { end() }

        func cancel() { end() }
    }
}

extension LocalKeychain: ObservableKeychain {
    package func observeChanges(_ onChange: @escaping @Sendable () -> Void) throws(KeychainFailure) -> any ChangeObservation {
        try ForkDetection.requireNotForked()
        return try changes.observe(self, onChange)
    }
}

extension FileKeychainBackend {
    /// Watches the file and its -wal file, and the anchors, which are written after a change has taken effect and marked after an unlock.
    func watchContent(_ onEvent: @escaping @Sendable (ContentEvent) -> ContentFinding) throws(KeychainFailure) -> any ContentWatch {
        let path = configuration.storePath
        let directory = FileSystem.parent(of: path)
        let name = String(path.dropFirst(directory == "/" ? 1 : directory.count + 1))
        do throws(Errno) {
            return try FileWatch(
                [
                    FileWatch.Target(directory: directory, mainFile: name, isFlushed: true) { $0 == name || $0 == name + "-wal" },
                    FileWatch.Target(directory: configuration.keyDirectory, reportsDates: true) { $0.hasSuffix(".anchor") },
                ]
            ) { event in
                switch onEvent(event == .replaced ? .replaced : .written) {
                case .changed: .changed
                case .unchanged: .unchanged
                case .unreadable: .unusable
                }
            }
        } catch {
            throw KeychainFailure(
                .notAvailable, "the changes of the keychain cannot be observed: \(error)", cause: .system(errno: error.rawValue))
        }
    }
}

extension FileKeychainBackend {
    /// Sets the date of the anchors, which every watch sees.
    func announceUnlock(of keychain: OpenKeychain) {
        for path in configuration.anchorPaths(for: keychain.keybag.storeID) { FileSystem.trySetModificationDateToNow(path) }
    }
}

extension FileWatch: ContentWatch {}
