// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTesting
import Testing

@Suite("Both stores keep every rule of a store")
struct ContractTests {
    @Test("The store in a file", arguments: ItemStoreContract.rules)
    func fileStore(rule: ItemStoreContract) throws {
        let directory = try TemporaryDirectory()
        #expect(rule.violations(of: try directory.makeStore()) == [])
    }

    @Test("The store in memory", arguments: ItemStoreContract.rules)
    func memoryStore(rule: ItemStoreContract) {
        #expect(rule.violations(of: InMemoryItemStore(keybag: ItemStoreContract.keybag)) == [])
    }

    @Test("A store that breaks a rule is found out", arguments: BrokenStore.Fault.allCases)
    func brokenStore(fault: BrokenStore.Fault) {
        #expect(
            ItemStoreContract.rules.contains { rule in
                rule.violations(of: BrokenStore(InMemoryItemStore(keybag: ItemStoreContract.keybag), fault)) != []
            })
    }

    @Test("A store that does nothing wrong behind the same wrapper is not")
    func wrappedStore() {
        for rule in ItemStoreContract.rules {
            #expect(rule.violations(of: BrokenStore(InMemoryItemStore(keybag: ItemStoreContract.keybag), nil)) == [])
        }
    }
}
