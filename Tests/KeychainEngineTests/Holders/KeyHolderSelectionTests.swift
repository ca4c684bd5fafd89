// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import Testing

@Suite("Choosing a key holder")
struct KeyHolderSelectionTests {
    private func kind(of selection: KeyHolderSelection) throws -> KeyHolderKind {
        try selection.makeHolder(storeID: .random(), epochSource: ManualEpoch().source).kind
    }

    @Test("The process's memory is had everywhere")
    func processMemory() throws {
        #expect(try kind(of: .processMemory) == .processMemory)
    }

    @Test("The kernel's keyring is chosen where it is to be had", .enabled(if: KernelKeyringNeeds.keyring))
    func kernelKeyring() throws {
        let expected: KeyHolderKind = UserNamespace.isInitial ? .kernelKeyring : .kernelKeyringOfUserNamespace
        #expect(try kind(of: .automatic) == expected)
        #expect(try kind(of: .kernelKeyring) == expected)
    }

    @Test("The first user namespace is the one where every user is who he is")
    func userNamespace() {
        #expect(UserNamespace.isInitial(map: "         0          0 4294967295\n"))
        for map in ["         0       1000          1\n", "0 0 1\n1 1 4294967294\n", "0 0 4294967294", "", nil] {
            #expect(!UserNamespace.isInitial(map: map))
        }
    }
}
