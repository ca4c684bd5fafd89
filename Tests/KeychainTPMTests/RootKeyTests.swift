// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainTPM
import KeychainTestSupport
import Synchronization
import Testing

@Suite("The storage root key", .enabled(if: TPMDevice.isBuilt))
struct RootKeyTests {
    private let handle = "0x81000001"

    @Test("It is made where every system keeps it, as every system makes it")
    func made() throws {
        let chip = try SoftwareTPM()
        let name = try TPMDevice(tcti: chip.tcti).rootKeyName()
        let description = try chip.run("tpm2_readpublic", "-c", handle)
        #expect(description.contains("name: \(name.hexadecimal)"))
        for line in [
            "value: fixedtpm|fixedparent|sensitivedataorigin|userwithauth|noda|restricted|decrypt", "value: NIST p256", "value: aes",
            "bits: 128", "value: cfb",
        ] {
            #expect(description.contains(line), "no \(line) in \(description)")
        }
        #expect(try chip.loadedHandles() == [])
    }

    @Test("One that another program has made from the same template has the same name")
    func sameAsOthers() throws {
        let chip = try SoftwareTPM()
        let name = try TPMDevice(tcti: chip.tcti).rootKeyName()
        try chip.run("tpm2_evictcontrol", "-C", "o", "-c", handle)
        try withTemporaryDirectory { directory in
            // Each coordinate is 32 zeros, as TCG's template L-2 has them. The tool wants the size and a place for 128 bytes.
            let coordinate = Data([32, 0]) + Data(count: 128)
            try (coordinate + coordinate).write(to: URL(filePath: directory + "/unique"))
            try persist(
                on: chip, "ecc256:aes128cfb", "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|noda|restricted|decrypt",
                unique: directory + "/unique")
        }
        #expect(try TPMDevice(tcti: chip.tcti).rootKeyName() == name)
    }

    @Test("An RSA storage key that is there is used")
    func rsa() throws {
        let chip = try SoftwareTPM()
        try persist(on: chip, "rsa2048:aes128cfb", "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|noda|restricted|decrypt")
        for authorization in [nil, Sample.authorization] {
            let object = try Sample.seal(on: chip, authorization)
            #expect(try Sample.unseal(object, on: chip, authorization) == Sample.secret)
        }
        #expect(try chip.run("tpm2_readpublic", "-c", handle).contains("value: rsa"))
        #expect(try chip.loadedHandles() == [])
    }

    @Test("Something else that is there is left alone, and named")
    func somethingElse() throws {
        let chip = try SoftwareTPM()
        try persist(on: chip, "ecc256", "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|sign")
        let failure = SealingFailure.failed("the TPM has something at 0x81000001 that is no storage key")
        #expect(throws: failure) { try Sample.seal(on: chip) }
        #expect(throws: failure) { try TPMDevice(tcti: chip.tcti).rootKeyName() }
        #expect(try chip.run("tpm2_readpublic", "-c", handle).contains("sign"))
    }

    @Test("A chip whose owner has set a password is no wrong authorization, and serves when the key is there")
    func ownerPassword() throws {
        let chip = try SoftwareTPM()
        try chip.run("tpm2_changeauth", "-c", "owner", "a password")
        do {
            _ = try TPMDevice(tcti: chip.tcti).rootKeyName()
            Issue.record("the key was made")
        } catch .failed(let text) {
            #expect(text.contains("password"))
        } catch {
            Issue.record(error)
        }
        try chip.run("tpm2_changeauth", "-c", "owner", "-p", "a password")
        let object = try Sample.seal(on: chip)
        try chip.run("tpm2_changeauth", "-c", "owner", "a password")
        #expect(try Sample.unseal(object, on: chip) == Sample.secret)
    }

    @Test("Eight that find none at the same moment agree, though the chip has three places, and leave nothing behind")
    func race() throws {
        let chip = try SoftwareTPM()
        let results = Mutex<[Result<[UInt8], any Error>]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { [tcti = chip.tcti] index in
            // The same place under eight names: calls take turns only with calls under the same.
            let other = tcti.replacing("/S", with: String(repeating: "/", count: index + 1) + "S")
            let result = Result { try TPMDevice(tcti: other).rootKeyName() }
            results.withLock { $0.append(result) }
        }
        let names = try results.withLock { try $0.map { try $0.get() } }
        #expect(names.count == 8)
        #expect(Set(names) == [try TPMDevice(tcti: chip.tcti).rootKeyName()])
        #expect(try chip.loadedHandles() == [])
    }

    private func persist(on chip: SoftwareTPM, _ algorithm: String, _ attributes: String, unique: String? = nil) throws {
        try withTemporaryDirectory { directory in
            let context = directory + "/key"
            if let unique {
                try chip.run("tpm2_createprimary", "-C", "o", "-G", algorithm, "-a", attributes, "-c", context, "-u", unique)
            } else {
                try chip.run("tpm2_createprimary", "-C", "o", "-G", algorithm, "-a", attributes, "-c", context)
            }
            try chip.run("tpm2_evictcontrol", "-C", "o", "-c", context, handle)
            try chip.run("tpm2_flushcontext", "-t")
        }
    }
}

extension [UInt8] {
    fileprivate var hexadecimal: String {
        map { byte in String(byte >> 4, radix: 16) + String(byte & 0xf, radix: 16) }.joined()
    }
}
