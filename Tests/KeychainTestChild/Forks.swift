// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainServices
import KeychainStore
import Valet

/// fork(2), which Swift does not import because the child must not use what another thread may have locked.
private let fork: (@convention(c) () -> pid_t)? = {
    // The symbol is the C library's fork, which has this type.
    unsafe dlsym(nil, "fork").map { symbol in unsafe unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self) }
}()

/// In a forked child: ends it if it waits for a lock.
private func endIfBlocked() {
    // Threads of Dispatch block the signal.
    var signals = sigset_t()
    // `signals` outlives the calls.
    unsafe sigemptyset(&signals)
    unsafe sigaddset(&signals, SIGALRM)
    unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    alarm(30)
}

/// Waits for a forked child, and returns how it ended, as waitpid(2) returns it.
private func ending(of child: pid_t) -> Int32 {
    var ending: Int32 = -1
    // `ending` outlives the call.
    _ = unsafe waitpid(child, &ending, 0)
    return ending
}

extension ChildCommand {
    /// COUNT: forks COUNT times while other threads use the keychain, and prints how each child ended.
    static func forkRepeatedly(_ arguments: [String]) throws {
        guard let count = arguments.first.flatMap({ Int($0) }), let fork else { throw BadArguments() }
        let use = ForkedUse(valet: try testValet())
        // In a task, because some of the calls are asynchronous.
        Task.detached {
            // Lazy initialization is complete in the children.
            _ = await use.callsThatWereNotRefused()
            use.startThreads()
            for _ in 0..<count {
                let child = fork()
                if child == 0 {
                    endIfBlocked()
                    let calls = await use.callsThatWereNotRefused()
                    if !calls.isEmpty { say("not refused: \(calls)") }
                    _exit(calls.isEmpty ? 0 : 1)
                }
                say("\(ending(of: child))")
            }
            // Does not run exit handlers beside the threads.
            _exit(0)
        }
        while true { pause() }
    }

    /// PATH: creates and opens a store, and prints how many calls to it are refused before, in, and after a fork.
    static func forkWithStore(_ arguments: [String]) throws {
        guard let path = arguments.first else { throw BadArguments() }
        func create() throws {
            _ = try SQLiteItemStore.create(at: path, storeID: .random(), keybag: [1], generation: 7)
        }
        try create()
        let store = try SQLiteItemStore(openingAt: path)
        try forkWithCalls([
            { _ = try store.keybag() },
            { _ = try store.read { _ in 1 } },
            { _ = try store.write(ifKeybagGeneration: 7) { _ in 1 } },
            { _ = try SQLiteItemStore(openingAt: path) },
            create,
        ])
    }

    /// SELECTION: does the same with a key holder.
    ///
    /// Prints `held` if the holder still has its key at the end.
    static func forkWithKeyHolder(_ arguments: [String]) throws {
        guard let selection = arguments.first.flatMap(KeyHolderSelection.init(rawValue:)) else { throw BadArguments() }
        let epoch = LockEpoch(rawValue: 7)
        let holder = try selection.makeHolder(storeID: .random()) { epoch }
        let secret = try SecretBytes(randomByteCount: 32)
        try forkWithCalls([
            { try holder.hold(secret, in: .firstUnlock, timeoutSeconds: nil, lockEpoch: epoch) },
            { _ = try holder.load(.unlocked, for: .use, lockEpoch: epoch) },
            { try holder.remove(.unlocked) },
        ])
        if try holder.load(.firstUnlock, for: .use, lockEpoch: epoch) != nil { say("held") }
        try holder.remove(.firstUnlock)
    }

    private static func forkWithCalls(_ calls: [() throws -> Void]) throws {
        guard let fork else { throw BadArguments() }
        func refusedCount() -> Int32 {
            var count: Int32 = 0
            for call in calls {
                do { try call() } catch { count += (error as? KeychainFailure)?.status == .notAvailable ? 1 : 100 }
            }
            return count
        }
        // Also completes lazy initialization.
        say("\(refusedCount()) refused before")
        let child = fork()
        if child == 0 {
            endIfBlocked()
            _exit(refusedCount())
        }
        let ending = ending(of: child)
        say(ending & 0x7F == 0 ? "\(ending >> 8) refused in the child" : "the child ended with \(ending)")
        say("\(refusedCount()) refused after")
    }
}

/// Calls to the keychain, by the threads of a program that forks and by its forked children.
///
/// `@unchecked Sendable`: the variables are constant, and a context can be used from any thread.
private final class ForkedUse: @unchecked Sendable {
    private let valet: Valet
    private let singlePrompt: SinglePromptSecureEnclaveValet
    private let context = LAContext()

    init(valet: Valet) {
        self.valet = valet
        singlePrompt = SinglePromptSecureEnclaveValet.valet(with: valet.identifier, accessControl: .userPresence)
    }

    /// Starts a thread for each lock, which acquires that lock again and again.
    func startThreads() {
        let calls: [@Sendable () -> Void] = [
            { _ = try? self.valet.string(forKey: "key") },
            { try? self.valet.setString("another value", forKey: "key") },
            { _ = Valet.valet(with: self.valet.identifier, accessibility: .afterFirstUnlock) },
            { self.singlePrompt.requirePromptOnNextAccess() },
            { self.context.localizedReason = "a reason" },
            { _ = try? KeychainSession.current().state },
            { self.context.setCredential(Data("password".utf8), type: .applicationPassword) },
        ]
        for call in calls { Thread.detachNewThread { while true { call() } } }
    }

    /// Makes one call of each kind, and returns the names of those that were not refused.
    func callsThatWereNotRefused() async -> [String] {
        let query: [String: Any] = [kSecClass as String: kSecClassGenericPassword as String, kSecAttrAccount as String: "key"]
        let other = Valet.valet(with: valet.identifier, accessibility: .afterFirstUnlock)
        singlePrompt.requirePromptOnNextAccess()
        context.localizedReason = "another reason"
        var refusals = [
            "SecItemCopyMatching": SecItemCopyMatching(query as CFDictionary, nil) == errSecNotAvailable,
            "SecItemAdd": SecItemAdd(query as CFDictionary, nil) == errSecNotAvailable,
            "SecItemUpdate": SecItemUpdate(query as CFDictionary, [kSecAttrLabel as String: "x"] as CFDictionary) == errSecNotAvailable,
            // Without the fork, this query is not valid.
            "SecItemDelete": SecItemDelete([kSecClass as String: "nothing"] as CFDictionary) == errSecNotAvailable,
            "string": isRefused { _ = try self.valet.string(forKey: "key") },
            "setString": isRefused { try self.valet.setString("value", forKey: "key") },
            "removeObject": isRefused { try other.removeObject(forKey: "key") },
            "canAccessKeychain": !other.canAccessKeychain(),
            "single prompt": isRefused { _ = try self.singlePrompt.string(forKey: "key", withPrompt: "") },
            // The error pointer is nil.
            "canEvaluatePolicy": unsafe !context.canEvaluatePolicy(.deviceOwnerAuthentication, error: nil),
            "setCredential": !context.setCredential(Data("password".utf8), type: .applicationPassword),
            "session": (try? KeychainSession.current()) == nil,
        ]
        refusals["evaluatePolicy"] = await isInvalid {
            try await $0.evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "a reason")
        }
        // Not refused, but runs on the only thread that the child has.
        refusals["withBlockingCalls"] = (try? await withBlockingCalls { 1 }) == 1
        return refusals.filter { !$0.value }.keys.sorted()
    }

    private func isRefused(_ call: () throws -> Void) -> Bool {
        do {
            try call()
            return false
        } catch {
            return error as? KeychainError == .couldNotAccessKeychain
        }
    }

    private func isInvalid(_ call: (LAContext) async throws -> Bool) async -> Bool {
        do {
            _ = try await call(context)
            return false
        } catch {
            return (error as? LAError)?.code == .invalidContext
        }
    }
}
