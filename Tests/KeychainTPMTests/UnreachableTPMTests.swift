// SPDX-License-Identifier: Apache-2.0
import CTPMShims
import Contracts
import Foundation
import KeychainCore
import KeychainTPM
import KeychainTestSupport
import Synchronization
import Testing

@Suite("An unusable TPM", .requiresTPM)
struct UnreachableChipTests {
    @Test(
        "A missing TPM is unavailable, and no other is used",
        arguments: ["swtpm:path=/nonexistent/S", "device:/dev/null/tpm", "device:/nonexistent", "nosuchmodule", "nosuchmodule:x"]
    )
    func none(tcti: String) throws {
        let device = try TPMDevice(tcti: tcti)
        expectUnavailable { _ = try device.rootKeyName() }
        expectUnavailable { _ = try device.status() }
    }

    @Test("A device that cannot be opened is unavailable")
    func reason() throws {
        let failure = SealingFailure.unavailable("no TPM at device:/nonexistent/tpm: 0xA000A, No such file or directory")
        #expect(throws: failure) { try TPMDevice(tcti: "device:/nonexistent/tpm").status() }
    }

    @Test("A TCTI without a module is rejected", arguments: ["", ":", ":/dev/tpmrm0", "swtpm\0:path=/S"])
    func unnamed(tcti: String) {
        expectUnavailable { _ = try TPMDevice(tcti: tcti) }
    }

    @Test("Calls to a stopped TPM time out, queued ones too, and succeed again once it continues")
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

    @Test("A child process started during a call does not inherit the connection")
    func inheritance() throws {
        let chip = try SoftwareTPM()
        let object = try Sample.seal(on: chip)
        chip.send(signal: SIGSTOP)
        #expect(throws: SealingFailure.timedOut) { try Sample.unseal(object, on: chip, timeoutSeconds: 1) }
        let program = try ChildProcess("sleep", ["600"])
        chip.send(signal: SIGCONT)
        #expect(try Sample.unseal(object, on: chip) == Sample.secret)
        program.send(signal: SIGKILL)
    }

    @Test("A TPM that ends while it is stopped is unavailable afterwards")
    func stoppedAndEnded() throws {
        let chip = try SoftwareTPM()
        let device = try TPMDevice(tcti: chip.tcti, timeoutSeconds: 1)
        chip.send(signal: SIGSTOP)
        #expect(throws: SealingFailure.timedOut) { try device.status() }
        try chip.kill()
        let patient = try TPMDevice(tcti: chip.tcti)
        expectUnavailable { _ = try patient.status() }
    }

    @Test("A power cut before a call makes the TPM unavailable until it has power again")
    func killed() throws {
        let chip = try SoftwareTPM()
        let object = try Sample.seal(on: chip)
        try chip.kill()
        expectUnavailable { _ = try Sample.unseal(object, on: chip) }
        try chip.start()
        #expect(try Sample.unseal(object, on: chip) == Sample.secret)
    }

    @Test("After a power cut at any time, calls fail without hanging, and sealed secrets are not lost")
    func killedMidway() throws {
        let chip = try SoftwareTPM()
        // A TPM counts an attempt if its power was cut after use of an authorized object.
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

    /// Uses the TPM until it is gone.
    ///
    /// Returns nil if each call succeeded or failed for that reason.
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

    /// A TPM in this state either answers with a failure or closes the connection.
    @Test("A TPM that cannot write its state fails")
    func unwritable() throws {
        let chip = try SoftwareTPM()
        try FileManager.default.removeItem(atPath: chip.stateDirectory)
        let failure = #expect(throws: SealingFailure.self) { try TPMDevice(tcti: chip.tcti).rootKeyName() }
        switch failure {
        case .failed, .unavailable: break
        default: Issue.record("\(String(describing: failure))")
        }
    }

    @Test("A TPM without free session slots is busy, and succeeds once one is free")
    func full() throws {
        let chip = try SoftwareTPM()
        let object = try Sample.seal(on: chip)
        try withTemporaryDirectory { directory in
            for _ in 0..<3 { try chip.run("tpm2_createprimary", "-C", "o", "-G", "ecc", "-c", directory + "/key") }
        }
        #expect(throws: SealingFailure.timedOut) { try Sample.unseal(object, on: chip, timeoutSeconds: 1) }
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

@Suite("Repeated and concurrent calls", .requiresTPM)
struct ManyCallsTests {
    @Test("A thousand calls leave nothing loaded in the TPM")
    func thousand() throws {
        let chip = try SoftwareTPM()
        let device = try TPMDevice(tcti: chip.tcti)
        let open = try Sample.seal(on: chip)
        let guarded = try Sample.seal(on: chip, Sample.authorization)
        let authorization = SealingAuthorization.bytes(try SecretBytes(Sample.authorization))
        for _ in 0..<500 {
            #expect(try device.unseal(open, authorization: .none).bytes == Sample.secret)
            #expect(try device.unseal(guarded, authorization: authorization).bytes == Sample.secret)
        }
        #expect(try chip.loadedHandles() == [])
    }

    @Test("Calls of eight threads are serialized")
    func threads() throws {
        let chip = try SoftwareTPM()
        let open = try Sample.seal(on: chip)
        let guarded = try Sample.seal(on: chip, Sample.authorization)
        let results = Mutex<[Result<[UInt8], any Error>]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { [tcti = chip.tcti] index in
            for round in 0..<10 {
                let isOpen = (index + round).isMultiple(of: 2)
                let result = Result {
                    try Sample.unseal(
                        isOpen ? open : guarded, tcti: tcti, isOpen ? nil : Sample.authorization, timeoutSeconds: 600)
                }
                results.withLock { $0.append(result) }
            }
        }
        let secrets = try results.withLock { try $0.map { try $0.get() } }
        #expect(secrets == [[UInt8]](repeating: Sample.secret, count: 80))
        #expect(try chip.loadedHandles() == [])
    }

    @Test("With TSS2_LOG off, failing calls print nothing, and no descriptor leaks")
    func quiet() throws {
        let chip = try SoftwareTPM()
        let child = try BuiltProgram.path(of: "KeychainTestChild")
        let result = try ChildProcess.run(child, ["seal-and-fail", chip.tcti], environment: ["TSS2_LOG": "all+NONE"])
        #expect(result.output == "sealed and failed\n")
        #expect(result.ending == .exited(0))
        #expect(try chip.loadedHandles() == [])
    }
}

@Suite("Response codes")
struct ResponseCodeTests {
    @Test(
        "Codes are classified by format and number, independent of handle, parameter, and layer",
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

@Suite("A build without the trait TPM", .requiresBuildWithoutTPM)
struct WithoutTraitTests {
    @Test("Every call reports that TPMs are not supported")
    func unsupported() throws {
        let device = try TPMDevice()
        #expect(throws: SealingFailure.unavailable("not built with TPM")) { try device.rootKeyName() }
        #expect(throws: SealingFailure.unavailable("not built with TPM")) { try device.status() }
        let secret = try SecretBytes(randomByteCount: 32)
        #expect(throws: SealingFailure.unavailable("not built with TPM")) { try device.seal(secret, authorization: .none) }
    }
}
