// SPDX-License-Identifier: Apache-2.0
import CTPMShims
import Testing

@Suite("Response codes")
struct ResponseCodeTests {
    @Test(
        "They are told apart by format and number, whichever parameter, handle or session they name, whoever passes them on",
        arguments: [
            (0, KEYCHAIN_TPM_DONE),
            (0x98e, KEYCHAIN_TPM_WRONG_AUTHORIZATION), (0x98e + 0x100, KEYCHAIN_TPM_WRONG_AUTHORIZATION),
            (0x9a2, KEYCHAIN_TPM_WRONG_AUTHORIZATION), (0x1a2, KEYCHAIN_TPM_WRONG_AUTHORIZATION),
            (0x921, KEYCHAIN_TPM_LOCKED_OUT),
            (0x99d, KEYCHAIN_TPM_FAILED), (0x12f, KEYCHAIN_TPM_FAILED), (0x101, KEYCHAIN_TPM_FAILED), (0x100, KEYCHAIN_TPM_FAILED),
            (0x18b, KEYCHAIN_TPM_MISSING), (0x28b, KEYCHAIN_TPM_MISSING),
            (0x1df, KEYCHAIN_TPM_FOREIGN_OBJECT), (0x2df, KEYCHAIN_TPM_FOREIGN_OBJECT),
            (0x902, KEYCHAIN_TPM_BUSY), (0x903, KEYCHAIN_TPM_BUSY), (0x908, KEYCHAIN_TPM_BUSY), (0x90a, KEYCHAIN_TPM_BUSY),
            (0x920, KEYCHAIN_TPM_BUSY), (0x922, KEYCHAIN_TPM_BUSY), (0x923, KEYCHAIN_TPM_BUSY),
            (0xa000a, KEYCHAIN_TPM_UNAVAILABLE), (0xa0001, KEYCHAIN_TPM_UNAVAILABLE),
            (0xb0921, KEYCHAIN_TPM_LOCKED_OUT), (0xc098e, KEYCHAIN_TPM_WRONG_AUTHORIZATION),
            (0x7000b, KEYCHAIN_TPM_FAILED), (0x80001, KEYCHAIN_TPM_FAILED), (0x9000a, KEYCHAIN_TPM_FAILED),
        ] as [(UInt32, keychain_tpm_outcome)]
    )
    func classification(code: UInt32, outcome: keychain_tpm_outcome) {
        #expect(keychain_tpm_classify(code) == outcome)
    }
}
