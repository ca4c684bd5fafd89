// SPDX-License-Identifier: Apache-2.0
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTesting
import Testing

@Suite("A process forked from one that holds keys", .timeLimit(.minutes(1)))
struct ForkedHolderTests {
    /// Swift hides fork, for good reasons; this test is about those.
    private typealias Fork = @convention(c) () -> pid_t

    @Test("Every call to a holder is refused there, and the parent goes on")
    func forked() throws {
        let keys = KernelKeys()
        let memory = ProcessMemoryKeyHolder(
            storeID: keys.storeID, epochSource: ManualEpoch().source, keys: ProcessMemoryKeys(time: ManualTime()))
        let holders: [any KeyHolder] = KernelKeyringNeeds.keyring ? [memory, keys.holder()] : [memory]
        // The symbol is libc's fork, whose type this is.
        let found = unsafe dlsym(nil, "fork").map { symbol in unsafe unsafeBitCast(symbol, to: Fork.self) }
        let fork = try #require(found)
        // Everything once in the parent, so that the child finds it ready.
        for holder in holders {
            #expect(refusalCount(holder) == 0)
            try holder.hold([1], timeoutSeconds: nil)
        }

        let child = fork()
        if child == 0 {
            _exit(Int32(holders.map(refusalCount).reduce(0, +)))
        }
        #expect(child > 0)
        var status: Int32 = 0
        while unsafe waitpid(child, &status, WNOHANG) == 0 { usleep(5_000) }
        #expect(status == Int32(holders.count * 3) << 8, "exit status \(status >> 8), signal \(status & 0x7F)")
        for holder in holders { #expect(try holder.bytes(in: .unlocked) == [1]) }
    }

    private func refusalCount(_ holder: any KeyHolder) -> Int {
        var count = 0
        do { try holder.hold([2], in: .firstUnlock, timeoutSeconds: nil) } catch { count += error.status == .notAvailable ? 1 : 100 }
        do { _ = try holder.load(.firstUnlock) } catch { count += error.status == .notAvailable ? 1 : 100 }
        do { try holder.remove(.firstUnlock) } catch { count += error.status == .notAvailable ? 1 : 100 }
        return count
    }
}
