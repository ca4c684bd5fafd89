// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainTPM
import KeychainTestSupport
import Testing

@Suite("A move to another protector that is killed leaves the old one or the new one")
struct ProtectorKillTests {
    private static let withoutChip: [ProtectorOperation] = [
        ProtectorOperation(origin: .keyFile, target: .systemdCredential, passcode: nil),
        ProtectorOperation(origin: .systemdCredential, target: .keyFile, passcode: nil),
        ProtectorOperation(origin: .keyFile, target: .systemdCredential, passcode: "Druidia"),
        ProtectorOperation(origin: .systemdCredential, target: .keyFile, passcode: "Druidia"),
    ]

    @Test("Killed at any moment, every item is there and readable, and the move can be finished", arguments: withoutChip)
    func killed(_ operation: ProtectorOperation) throws {
        try expectWholeOrNothing(operation)
    }

    @Test(
        "With a chip too", .enabled(if: TPMDevice.isBuilt),
        arguments: [(DeviceProtectorKind.keyFile, DeviceProtectorKind.tpm2), (.tpm2, .keyFile)])
    func killedWithChip(_ origin: DeviceProtectorKind, _ target: DeviceProtectorKind) throws {
        let chip = try SoftwareTPM()
        try chip.setLockout(afterTries: 1_000, recoverySeconds: 10)
        try expectWholeOrNothing(ProtectorOperation(origin: origin, target: target, passcode: "Druidia", tcti: chip.tcti))
    }

    @Test("A recovery that is killed can be done again, until it is done, and sets aside what it does not use")
    func killedRecovery() throws {
        try expectWholeOrNothing(RecoveryOperation())
    }

    private func expectWholeOrNothing(_ operation: any KillScenario) throws {
        let tally = try KillHarness(scenario: operation).run(pointCount: 12, callCount: 20)
        #expect(FlushTrace.obstacle != nil || tally.callCount > 0, "no call was met")
        #expect(tally.outcomes[.nothingDone] != nil && tally.outcomes[.done] != nil, "\(tally)")
    }
}
