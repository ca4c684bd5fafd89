// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTPM
import KeychainTestSupport
import Testing

@Suite("Objects that this chip did not seal", .enabled(if: TPMDevice.isBuilt))
struct ForeignObjectTests {
    @Test("Another chip does not unseal it, also when the name of its storage root key is put on it")
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

    @Test("Looking and unsealing leave a chip that has sealed nothing as it is")
    func untouched() throws {
        let chip = try SoftwareTPM()
        let object = try Sample.seal(on: chip)
        let other = try SoftwareTPM()
        let device = try TPMDevice(tcti: other.tcti)
        #expect(throws: SealingFailure.foreignObject) { try device.rootKeyName(makingOne: false) }
        #expect(throws: SealingFailure.foreignObject) { try Sample.unseal(object, on: other) }
        _ = try device.status()
        #expect(try other.run("tpm2_getcap", "handles-persistent").isEmpty)
        // The same question to a chip that has a key finds it.
        #expect(try !chip.run("tpm2_getcap", "handles-persistent").isEmpty)
    }

    @Test("The chip itself does not unseal it after it was cleared, and has another storage root key then")
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
        "A part of another size or another form never reaches the chip, nor the library below us",
        arguments: [nil, Sample.authorization]
    )
    func otherForms(authorization: [UInt8]?) throws {
        let chip = try SoftwareTPM()
        let object = try Sample.seal(on: chip, authorization)
        // What reached the chip would be answered with `unavailable`.
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
        // All but the 32 bytes that are the object's own.
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
