// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTPM
import KeychainTestSupport
import Testing

@Suite("A build that cannot talk to a TPM", .enabled(if: !TPMDevice.isBuilt))
struct WithoutTPMTests {
    @Test("It makes no keychain in one, moves none there, and says what adds the support")
    func saysSo() throws {
        try withTemporaryDirectory { home in
            func expectNone(_ body: () throws -> Void) {
                let failure = #expect(throws: KeychainFailure.self) { try body() }
                #expect(failure?.status == .notAvailable && failure?.reason.contains("the package trait TPM") == true)
            }
            expectNone { try LocalKeychain(home: home) { $0.protectorForNewStore = .tpm2 }.addItem("there", "one") }
            #expect(!FileManager.default.fileExists(atPath: home + "/keychain.db"))
            let keychain = LocalKeychain(home: home)
            try keychain.addItem("there", "one")
            expectNone { _ = try keychain.setProtector(.tpm2, passcode: nil, makingRecoveryKey: true) }
            #expect(try keychain.secret(of: "there") == "one" && keychain.report().store?.hasRecoveryKey == false)
        }
    }
}
