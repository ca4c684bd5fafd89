// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainTPM
import KeychainTestSupport
import Synchronization
import Testing

@Suite("Many calls", .enabled(if: TPMDevice.isBuilt))
struct ManyCallsTests {
    @Test("A thousand leave nothing behind in the chip")
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

    @Test("Those of eight threads take turns")
    func threads() throws {
        let chip = try SoftwareTPM()
        let open = try Sample.seal(on: chip)
        let guarded = try Sample.seal(on: chip, Sample.authorization)
        let results = Mutex<[Result<[UInt8], any Error>]>([])
        DispatchQueue.concurrentPerform(iterations: 8) { [tcti = chip.tcti] index in
            for round in 0..<10 {
                let result = Result {
                    (index + round).isMultiple(of: 2)
                        ? try Sample.unseal(open, tcti: tcti) : try Sample.unseal(guarded, tcti: tcti, Sample.authorization)
                }
                results.withLock { $0.append(result) }
            }
        }
        let secrets = try results.withLock { try $0.map { try $0.get() } }
        #expect(secrets == [[UInt8]](repeating: Sample.secret, count: 80))
        #expect(try chip.loadedHandles() == [])
    }

    @Test("In a process, they print nothing, whatever goes wrong, and leave no descriptor open")
    func quiet() throws {
        let chip = try SoftwareTPM()
        let child = try BuiltProgram.path(of: "KeychainTestChild")
        let result = try ChildProcess.run(child, ["seal-and-fail", chip.tcti])
        #expect(result.output == "sealed and failed\n")
        #expect(result.ending == .exited(0))
        #expect(try chip.loadedHandles() == [])
    }
}
