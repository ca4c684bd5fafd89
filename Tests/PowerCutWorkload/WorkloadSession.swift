// SPDX-License-Identifier: Apache-2.0
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import PowerCutSimulation
import Synchronization
import Valet

/// A program that uses a keychain through Valet.
final class WorkloadSession {
    private let home: String
    /// Whether the items of all valets synchronize, except those that never leave the device.
    private let synchronizes: Bool
    private let making: () -> LocalKeychain
    private var keychain: FailureRecordingKeychain

    /// Status and reason of the engine's last failure, of which Valet reports only the kind.
    var lastStatus: Int32 { keychain.lastFailure?.status.rawValue ?? 0 }
    var lastReason: String { keychain.lastFailure?.reason ?? "" }

    init(home: String, synchronizes: Bool = false, _ making: @escaping () -> LocalKeychain) {
        self.home = home
        self.synchronizes = synchronizes
        self.making = making
        keychain = FailureRecordingKeychain(making())
    }

    /// Closes the keychain's files.
    func close() { keychain = FailureRecordingKeychain(making()) }

    /// Unlocks an existing keychain, in a process that continues a workload.
    func unlock(trying passcodes: [String]) {
        for passcode in passcodes {
            // Fails with a wrong passcode, or if none is set.
            try? keychain.noting { local throws(KeychainFailure) in try local.unlock(with: passcode) }
        }
    }

    func perform(_ operation: WorkloadOperation) throws {
        keychain.clearFailure()
        switch operation {
        case .set(let item, let value): try with(item.valet) { try $0.setString(value, forKey: item.key) }
        case .remove(let item): try with(item.valet) { try $0.removeObject(forKey: item.key) }
        case .removeAll(let valet): try with(valet) { try $0.removeAllObjects() }
        case .migrate(let source, let destination, let removesOriginals):
            try with(destination) {
                try $0.migrateObjects(from: self.valet(source), removeOnCompletion: removesOriginals)
            }
        case .setPasscode(let passcode): try keychain.noting { local throws(KeychainFailure) in try local.set(passcode) }
        case .changePasscode(let current, let new, let rotates):
            try keychain.noting { local throws(KeychainFailure) in
                try local.changePasscode(
                    from: try Passcode(text: current), to: try Passcode(text: new), rotatingKeys: rotates, autoLock: .standard)
            }
        case .removePasscode(let passcode):
            try keychain.noting { local throws(KeychainFailure) in
                try local.removePasscode(
                    try Passcode(text: passcode), deleting: try local.passcodeRemoval(try Passcode(text: passcode)))
            }
        case .reopen: close()
        case .startSynchronizing: try audit { audit throws(KeychainFailure) in try audit.start() }
        case .synchronize: try audit { audit throws(KeychainFailure) in try audit.synchronize() }
        }
    }

    /// Planted fault.
    func loseRecord() throws { try audit { audit throws(KeychainFailure) in try audit.loseRecords() } }

    private func audit(_ body: (RecordAudit) throws(KeychainFailure) -> Void) throws(KeychainFailure) {
        try keychain.noting { local throws(KeychainFailure) in try RecordAudit.with(local, body) }
    }

    private func with(_ valet: WorkloadValet, _ body: (Valet) throws -> Void) throws {
        try CurrentKeychain.with(keychain) { try body(self.valet(valet)) }
    }

    private func valet(_ valet: WorkloadValet) throws -> Valet {
        guard let identifier = Identifier(nonEmpty: valet.rawValue) else { throw BadArguments() }
        switch valet {
        case .everyday where synchronizes, .former where synchronizes:
            return Valet.iCloudValet(with: identifier, accessibility: .whenUnlocked)
        case .afterFirstUnlock where synchronizes: return Valet.iCloudValet(with: identifier, accessibility: .afterFirstUnlock)
        case .everyday, .former: return Valet.valet(with: identifier, accessibility: .whenUnlocked)
        case .afterFirstUnlock: return Valet.valet(with: identifier, accessibility: .afterFirstUnlock)
        case .withPasscode: return Valet.valet(with: identifier, accessibility: .whenPasscodeSetThisDeviceOnly)
        }
    }
}

/// A keychain that records its last failure.
final class FailureRecordingKeychain: Keychain {
    private let local: LocalKeychain
    private let failure = Mutex<KeychainFailure?>(nil)

    var lastFailure: KeychainFailure? { failure.withLock { $0 } }

    init(_ local: LocalKeychain) {
        self.local = local
    }

    func clearFailure() { failure.withLock { $0 = nil } }

    func noting<Result>(_ body: (LocalKeychain) throws(KeychainFailure) -> Result) throws(KeychainFailure) -> Result {
        do throws(KeychainFailure) {
            return try body(local)
        } catch {
            failure.withLock { $0 = error }
            throw error
        }
    }

    func add(_ request: AddRequest) throws(KeychainFailure) -> KeychainItem {
        try noting { local throws(KeychainFailure) in try local.add(request) }
    }

    func copyMatching(_ request: MatchRequest) throws(KeychainFailure) -> [KeychainItem] {
        try noting { local throws(KeychainFailure) in try local.copyMatching(request) }
    }

    func update(_ request: UpdateRequest) throws(KeychainFailure) {
        try noting { local throws(KeychainFailure) in try local.update(request) }
    }

    func delete(_ request: DeleteRequest) throws(KeychainFailure) {
        try noting { local throws(KeychainFailure) in try local.delete(request) }
    }
}
