// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainTPM
import KeychainTestSupport
import Synchronization
import Testing

extension SealingDevice {
    /// The name of the storage root key of a TPM that the test may change.
    func rootKeyName() throws(SealingFailure) -> [UInt8] { try rootKeyName(creatingIfMissing: true) }
}

/// Expects the failure that has no case of its own.
func expectFailed(location: SourceLocation = #_sourceLocation, _ body: () throws -> some Any) {
    let failure = #expect(throws: SealingFailure.self, sourceLocation: location) { _ = try body() }
    guard case .failed = failure else {
        Issue.record("\(String(describing: failure))", sourceLocation: location)
        return
    }
}

@Suite("The storage root key", .requiresTPM)
struct RootKeyTests {
    private let handle = "0x81000001"

    @Test("The key is created at the standard handle from the standard template")
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

    @Test("A key that another program created from the same template has the same name")
    func sameAsOthers() throws {
        let chip = try SoftwareTPM()
        let name = try TPMDevice(tcti: chip.tcti).rootKeyName()
        try chip.run("tpm2_evictcontrol", "-C", "o", "-c", handle)
        try withTemporaryDirectory { directory in
            // Each coordinate is 32 zeros, as in TCG's template L-2. The tool expects the size and a buffer of 128 bytes.
            let coordinate = Data([32, 0]) + Data(count: 128)
            try (coordinate + coordinate).write(to: URL(filePath: directory + "/unique"))
            try persist(
                on: chip, "ecc256:aes128cfb", "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|noda|restricted|decrypt",
                unique: directory + "/unique")
        }
        #expect(try TPMDevice(tcti: chip.tcti).rootKeyName() == name)
    }

    @Test("An existing RSA storage key is used")
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

    @Test("An object of another kind at the handle stays unchanged, and is reported")
    func somethingElse() throws {
        let chip = try SoftwareTPM()
        try persist(on: chip, "ecc256", "fixedtpm|fixedparent|sensitivedataorigin|userwithauth|sign")
        expectFailed { try Sample.seal(on: chip) }
        expectFailed { try TPMDevice(tcti: chip.tcti).rootKeyName() }
        #expect(try chip.run("tpm2_readpublic", "-c", handle).contains("sign"))
    }

    @Test("An owner password is not reported as a wrong authorization, and does not matter once the key exists")
    func ownerPassword() throws {
        let chip = try SoftwareTPM()
        try chip.run("tpm2_changeauth", "-c", "owner", "a password")
        expectFailed { try TPMDevice(tcti: chip.tcti).rootKeyName() }
        try chip.run("tpm2_changeauth", "-c", "owner", "-p", "a password")
        let object = try Sample.seal(on: chip)
        try chip.run("tpm2_changeauth", "-c", "owner", "a password")
        #expect(try Sample.unseal(object, on: chip) == Sample.secret)
    }

    @Test("Eight concurrent creations agree, though the TPM has three object slots, and leave nothing loaded")
    func race() throws {
        let chip = try SoftwareTPM()
        let results = Mutex<[Result<[UInt8], any Error>]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { [tcti = chip.tcti] index in
            // Eight names of the same TPM, because calls with the same name are serialized.
            let other = tcti.replacing("/S", with: String(repeating: "/", count: index + 1) + "S")
            let result = Result { try TPMDevice(tcti: other, timeoutSeconds: 600).rootKeyName() }
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

@Suite("Objects that this TPM did not seal", .requiresTPM)
struct ForeignObjectTests {
    @Test("Another TPM does not unseal an object, even with the name of that TPM's storage root key on it")
    func otherChip() throws {
        let chip = try SoftwareTPM()
        let other = try SoftwareTPM()
        let object = try Sample.seal(on: chip)
        #expect(throws: SealingFailure.foreignObject) { try Sample.unseal(object, on: other) }
        let renamed = try object.with(rootKeyName: TPMDevice(tcti: other.tcti).rootKeyName())
        #expect(throws: SealingFailure.foreignObject) { try Sample.unseal(renamed, on: other) }
        #expect(try other.loadedHandles() == [])
        #expect(try Sample.unseal(object, on: chip) == Sample.secret)
    }

    @Test("Reading and unsealing do not change an unused TPM")
    func untouched() throws {
        let chip = try SoftwareTPM()
        let object = try Sample.seal(on: chip)
        let other = try SoftwareTPM()
        let device = try TPMDevice(tcti: other.tcti)
        #expect(throws: SealingFailure.foreignObject) { try device.rootKeyName(creatingIfMissing: false) }
        #expect(throws: SealingFailure.foreignObject) { try Sample.unseal(object, on: other) }
        _ = try device.status()
        #expect(try other.run("tpm2_getcap", "handles-persistent").isEmpty)
        // The same call finds the key of a TPM that has one.
        #expect(try !chip.run("tpm2_getcap", "handles-persistent").isEmpty)
    }

    @Test("A cleared TPM does not unseal its old objects, and has another storage root key")
    func cleared() throws {
        let chip = try SoftwareTPM()
        let device = try TPMDevice(tcti: chip.tcti)
        let object = try Sample.seal(on: chip, Sample.authorization)
        #expect(try device.rootKeyName() == object.rootKeyName)
        try chip.clear()
        #expect(throws: SealingFailure.foreignObject) { try Sample.unseal(object, on: chip, Sample.authorization) }
        #expect(try device.rootKeyName() != object.rootKeyName)
        #expect(try device.status().failedTryCount == 0)
        #expect(try chip.loadedHandles() == [])
    }

    @Test("An object with any byte changed is refused")
    func changedBytes() throws {
        let chip = try SoftwareTPM()
        let object = try Sample.seal(on: chip)
        for index in object.rootKeyName.indices {
            #expect(throws: SealingFailure.foreignObject) {
                try Sample.unseal(object.with(rootKeyName: object.rootKeyName.changed(at: index)), on: chip)
            }
        }
        for index in object.publicArea.indices {
            #expect(throws: SealingFailure.self) {
                try Sample.unseal(object.with(publicArea: object.publicArea.changed(at: index)), on: chip)
            }
        }
        for index in object.privateArea.indices {
            #expect(throws: SealingFailure.self) {
                try Sample.unseal(object.with(privateArea: object.privateArea.changed(at: index)), on: chip)
            }
        }
        #expect(try chip.loadedHandles() == [])
        #expect(try Sample.unseal(object, on: chip) == Sample.secret)
    }

    @Test(
        "A part of another size or form reaches neither the TPM nor tpm2-tss",
        arguments: [nil, Sample.authorization]
    )
    func otherForms(authorization: [UInt8]?) throws {
        let chip = try SoftwareTPM()
        let object = try Sample.seal(on: chip, authorization)
        // If it reached the TPM, the error would be `unavailable`.
        try chip.kill()
        let sizes = [0, 1, 2, 3, 47, 49, 79, 81, 256, 257, 65_536, 1_000_000]
        for size in sizes where size != object.publicArea.count {
            for filler: UInt8 in [0, 0xff] {
                let padded = Array((object.publicArea + [UInt8](repeating: filler, count: size)).prefix(size))
                #expect(isRefused(object.with(publicArea: padded), on: chip, authorization), "a public part of \(size) bytes")
            }
        }
        for size in sizes where size != object.privateArea.count {
            let padded = Array((object.privateArea + [UInt8](repeating: 0, count: size)).prefix(size))
            #expect(isRefused(object.with(privateArea: padded), on: chip, authorization), "a private part of \(size) bytes")
        }
        // All bytes except the 32 that are unique to the object.
        for index in object.publicArea.indices.dropLast(32) {
            #expect(isRefused(object.with(publicArea: object.publicArea.changed(at: index)), on: chip, authorization), "byte \(index)")
        }
        #expect(isRefused(object.with(rootKeyName: [UInt8](repeating: 0, count: 67)), on: chip, authorization))
        #expect(throws: SealingFailure.self) { try Sample.unseal(object, on: chip, authorization) }
        #expect(!isRefused(object, on: chip, authorization))
    }

    private func isRefused(_ object: SealedObject, on chip: SoftwareTPM, _ authorization: [UInt8]?) -> Bool {
        do {
            _ = try Sample.unseal(object, on: chip, authorization)
            return false
        } catch SealingFailure.failed {
            return true
        } catch {
            return false
        }
    }
}

extension SealedObject {
    fileprivate func with(rootKeyName: [UInt8]? = nil, publicArea: [UInt8]? = nil, privateArea: [UInt8]? = nil) -> SealedObject {
        SealedObject(
            rootKeyName: rootKeyName ?? self.rootKeyName, publicArea: publicArea ?? self.publicArea,
            privateArea: privateArea ?? self.privateArea)
    }
}

extension [UInt8] {
    fileprivate func changed(at index: Int) -> [UInt8] {
        var copy = self
        copy[index] ^= 1 << UInt8.random(in: 0..<8)
        return copy
    }
}
