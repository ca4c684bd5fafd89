// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainTPM
import KeychainTestSupport
import Synchronization
import Testing

@Suite("A chip that cannot be used", .enabled(if: TPMDevice.isBuilt))
struct UnreachableChipTests {
    @Test(
        "Where there is none, it is unavailable, and no other is looked for",
        arguments: ["swtpm:path=/nonexistent/S", "device:/dev/null/tpm", "device:/nonexistent", "nosuchmodule", "nosuchmodule:x"]
    )
    func none(tcti: String) throws {
        let device = try TPMDevice(tcti: tcti)
        expectUnavailable { _ = try device.rootKeyName() }
        expectUnavailable { _ = try device.status() }
    }

    @Test("Of a device it is said why it cannot be opened")
    func reason() throws {
        let failure = SealingFailure.unavailable("no TPM at device:/nonexistent/tpm: 0xA000A, No such file or directory")
        #expect(throws: failure) { try TPMDevice(tcti: "device:/nonexistent/tpm").status() }
    }

    @Test("A place that does not say which module leads to it is refused", arguments: ["", ":", ":/dev/tpmrm0", "swtpm\0:path=/S"])
    func unnamed(tcti: String) {
        expectUnavailable { _ = try TPMDevice(tcti: tcti) }
    }

    @Test("One that is stopped ends in a time-out, for those who wait for their turn too, and serves again when it goes on")
    func stopped() throws {
        let chip = try SoftwareTPM()
        let object = try Sample.seal(on: chip)
        chip.send(signal: SIGSTOP)
        for _ in 0..<2 {
            #expect(throws: SealingFailure.timedOut) { try Sample.unseal(object, on: chip, timeoutSeconds: 1) }
        }
        chip.send(signal: SIGCONT)
        #expect(try Sample.unseal(object, on: chip) == Sample.secret)
        #expect(try chip.loadedHandles() == [])
    }

    @Test("One that is ended while it is stopped is unavailable afterwards")
    func stoppedAndEnded() throws {
        let chip = try SoftwareTPM()
        let device = try TPMDevice(tcti: chip.tcti, timeoutSeconds: 1)
        chip.send(signal: SIGSTOP)
        #expect(throws: SealingFailure.timedOut) { try device.status() }
        try chip.kill()
        let patient = try TPMDevice(tcti: chip.tcti)
        expectUnavailable { _ = try patient.status() }
    }

    @Test("Its power cut before a call makes it unavailable, and it serves again once it has power")
    func killed() throws {
        let chip = try SoftwareTPM()
        let object = try Sample.seal(on: chip)
        try chip.kill()
        expectUnavailable { _ = try Sample.unseal(object, on: chip) }
        try chip.start()
        #expect(try Sample.unseal(object, on: chip) == Sample.secret)
    }

    @Test("Its power cut at any moment ends calls, without a hang and without a wrong reason, and nothing is lost")
    func killedMidway() throws {
        let chip = try SoftwareTPM()
        // A chip counts a try when its power was cut after something guarded was used.
        try chip.setLockout(afterTries: 10_000, recoverySeconds: 10_000)
        let open = try Sample.seal(on: chip)
        let guarded = try Sample.seal(on: chip, Sample.authorization)
        let faults = Mutex<[String]>([])
        for _ in 0..<40 {
            let ended = DispatchSemaphore(value: 0)
            Thread.detachNewThread { [tcti = chip.tcti] in
                let fault = Self.use(open, guarded, tcti: tcti)
                if let fault { faults.withLock { $0.append(fault) } }
                ended.signal()
            }
            usleep(UInt32.random(in: 0..<60_000))
            try chip.kill()
            #expect(ended.wait(timeout: .now() + 60) == .success)
            try chip.start()
            #expect(try Sample.unseal(open, on: chip) == Sample.secret)
            #expect(try Sample.unseal(guarded, on: chip, Sample.authorization) == Sample.secret)
        }
        #expect(faults.withLock { $0 } == [])
        #expect(try chip.loadedHandles() == [])
    }

    /// Uses the chip until it is gone; nil when each call succeeded or failed for that reason.
    private static func use(_ open: SealedObject, _ guarded: SealedObject, tcti: String) -> String? {
        while true {
            do {
                let secrets = [
                    try Sample.unseal(open, tcti: tcti), try Sample.unseal(guarded, tcti: tcti, Sample.authorization),
                ]
                guard secrets == [Sample.secret, Sample.secret] else { return "another secret" }
                _ = try TPMDevice(tcti: tcti).seal(SecretBytes(Sample.secret), authorization: .none)
            } catch SealingFailure.unavailable {
                return nil
            } catch {
                return "\(error)"
            }
        }
    }

    @Test("One that cannot write what it must keep fails, and says with which code")
    func unwritable() throws {
        let chip = try SoftwareTPM()
        try FileManager.default.removeItem(atPath: chip.stateDirectory)
        let device = try TPMDevice(tcti: chip.tcti)
        do {
            _ = try device.rootKeyName()
            Issue.record("the key was made")
        } catch .failed(let text) {
            #expect(text.contains("0x101"))
        } catch {
            Issue.record(error)
        }
    }

    @Test("One whose places are all taken by others is busy, and serves once they are free")
    func full() throws {
        let chip = try SoftwareTPM()
        let object = try Sample.seal(on: chip)
        try withTemporaryDirectory { directory in
            for _ in 0..<3 { try chip.run("tpm2_createprimary", "-C", "o", "-G", "ecc", "-c", directory + "/key") }
        }
        #expect(throws: SealingFailure.timedOut) { try Sample.unseal(object, on: chip) }
        try chip.run("tpm2_flushcontext", "-t")
        #expect(try Sample.unseal(object, on: chip) == Sample.secret)
    }

    private func expectUnavailable(_ body: () throws -> Void) {
        do {
            try body()
            Issue.record("done")
        } catch SealingFailure.unavailable {
        } catch {
            Issue.record(error)
        }
    }
}
