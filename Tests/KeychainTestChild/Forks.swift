// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainServices
import Valet

extension ChildCommand {
    /// COUNT: forks COUNT times while other threads use the keychain, and prints how each child ended, as waitpid(2) returns it.
    static func forkRepeatedly(_ arguments: [String]) throws {
        // The symbol is the C library's fork, which has this type. Swift does not import it.
        let symbol = unsafe dlsym(nil, "fork").map { symbol in unsafe unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self) }
        guard let count = arguments.first.flatMap({ Int($0) }), let fork = symbol else { throw BadArguments() }
        let use = ForkedUse(valet: try testValet())
        // In a task, because some of the calls are asynchronous.
        Task.detached {
            // Lazy initialization is complete in the children.
            _ = await use.callsThatWereNotRefused()
            use.startThreads()
            for _ in 0..<count {
                let child = fork()
                if child == 0 {
                    // The signal, which threads of Dispatch block, ends a child that waits for a lock.
                    var signals = sigset_t()
                    // `signals` outlives the calls.
                    unsafe sigemptyset(&signals)
                    unsafe sigaddset(&signals, SIGALRM)
                    unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
                    alarm(30)
                    let calls = await use.callsThatWereNotRefused()
                    if !calls.isEmpty { say("not refused: \(calls)") }
                    _exit(calls.isEmpty ? 0 : 1)
                }
                var ending: Int32 = -1
                // `ending` outlives the call.
                _ = unsafe waitpid(child, &ending, 0)
                say("\(ending)")
            }
            // Does not run exit handlers beside the threads.
            _exit(0)
        }
        while true { pause() }
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
