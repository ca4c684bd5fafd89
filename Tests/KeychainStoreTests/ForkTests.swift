// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainStore
import KeychainTesting
import Testing

@Suite("A process forked from one that has a store open", .timeLimit(.minutes(1)))
struct ForkTests {
    /// Swift hides fork, for good reasons; this test is about those.
    private typealias Fork = @convention(c) () -> pid_t

    @Test("It is refused without a call to SQLite, and the parent goes on")
    func forked() throws {
        let directory = try TemporaryDirectory()
        let store = try directory.makeStore()
        try store.insert([SampleRows.row(account: 1)])
        // The symbol is libc's fork, whose type this is.
        let found = unsafe dlsym(nil, "fork").map { symbol in unsafe unsafeBitCast(symbol, to: Fork.self) }
        let fork = try #require(found)
        let path = directory.storePath
        func refusals() -> [KeychainFailure?] {
            [
                failure { () throws(KeychainFailure) in _ = try store.keybag() },
                failure { () throws(KeychainFailure) in _ = try store.read { _ in 1 } },
                failure { () throws(KeychainFailure) in _ = try store.write(ifKeybagGeneration: 7) { _ in 1 } },
                failure { () throws(KeychainFailure) in _ = try SQLiteItemStore(openingAt: path) },
                failure { () throws(KeychainFailure) in
                    _ = try SQLiteItemStore.create(at: path, storeID: .random(), keybag: [1], generation: 1)
                },
            ]
        }
        // Everything once in the parent, so that the child finds it ready.
        #expect(refusals().allSatisfy { $0 == nil })

        let child = fork()
        if child == 0 {
            let refusedCount = refusals().count { $0?.status == .notAvailable }
            store.close()
            _exit(Int32(refusedCount))
        }
        #expect(child > 0)
        var status: Int32 = 0
        var waited: pid_t = 0
        while waited == 0 {
            waited = unsafe waitpid(child, &status, WNOHANG)
            if waited == 0 { usleep(5_000) }
        }
        #expect(status == 5 << 8, "exit status \(status >> 8), signal \(status & 0x7F)")
        try store.insert([SampleRows.row(account: 2)])
        #expect(try store.rows().count == 2)
    }
}
