// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainTestSupport
import Testing

@Suite("What keychaind keeps of one user", .blocking)
struct QuotaTests {
    @Test("Items beyond the limit are refused, while the others can be read, replaced, and deleted, and the keychain can be locked")
    func items() throws {
        let service = try SpawnedService(options: ["--item-limit", "3"]) { keychain in
            try keychain.setPasscode(try Passcode(text: "swordfish"), autoLock: .never)
            try keychain.lock(.everything)
        }
        let client = service.client()
        try client.unlock(try Passcode(text: "swordfish"), autoLock: .never)
        for account in ["a", "b", "c"] { try client.set(account, "1") }
        #expect(failure { try client.set("d", "1") }?.cause == .quota)
        try client.set("a", "2")
        try client.delete(DeleteRequest(query: .account("b")))
        try client.set("d", "1")
        #expect(try Set(client.items().compactMap { $0.attributes.text(.account) }) == ["a", "c", "d"])
        #expect(try client.value(of: "a") == "2")
        try client.lock(.everything)
        #expect(try client.sessionStatus().state != .unlocked)
    }

    @Test("Bytes beyond the limit are refused, nothing that was acknowledged is lost, and what is deleted makes room")
    func bytes() throws {
        let service = try SpawnedService(options: ["--size-limit", "1"])
        let client = service.client()
        let value = String(repeating: "v", count: 100_000)
        var accounts: [String] = []
        var refusal: KeychainFailure?
        while refusal == nil, accounts.count < 20 {
            refusal = failure { try client.set("\(accounts.count)", value) }
            if refusal == nil { accounts.append("\(accounts.count)") }
        }
        #expect(refusal?.cause == .quota)
        #expect((5..<11).contains(accounts.count))
        #expect(failure { try client.set("0", value + value) }?.cause == .quota)
        _ = try service.restart(with: SIGKILL)
        for account in accounts { #expect(try client.value(of: account) == value) }
        // As large as before.
        let other = String(repeating: "w", count: value.utf8.count)
        try client.set("0", other)
        #expect(try client.value(of: "0") == other)
        for account in accounts { try client.delete(DeleteRequest(query: .account(account))) }
        for account in accounts { try client.set(account, value) }
    }

    @Test("Writes that share a flush with a refused one succeed")
    func concurrentWrites() async throws {
        let service = try SpawnedService(options: ["--item-limit", "40"])
        let (path, storeID) = (service.path, service.storeID)
        let outcomes = await onThreads(
            (0..<8).map { writer in
                { @Sendable () -> [Bool] in
                    let client = DaemonKeychain.test(path, "app", storeID: storeID)
                    return (0..<10).map { number in
                        failure { try client.set("\(writer)-\(number)", "1") } == nil
                    }
                }
            })
        #expect(outcomes.flatMap { $0 }.count { $0 } == 40)
        #expect(try service.client().items().count == 40)
    }

    @Test("A keychain that is too large is not adopted, and stays in its file")
    func adoption() throws {
        try withTemporaryDirectory { directory in
            let service = try SpawnedService(adopting: false, options: ["--item-limit", "3"])
            let keychain = LocalKeychain(home: directory)
            for number in 0..<4 { try keychain.set("\(number)", "1") }
            let refusal = failure {
                _ = try keychain.handOver(to: DaemonClient.connector(toSocketAt: service.path))
            }
            #expect(refusal?.cause == .quota)
            #expect(try keychain.items().count == 4)
            try keychain.delete(DeleteRequest(query: .account("0")))
            _ = try keychain.handOver(to: DaemonClient.connector(toSocketAt: service.path))
        }
    }
}
