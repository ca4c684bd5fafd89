// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainSync
import KeychainSyncEtcd
import KeychainTestSupport
import SyncCore

/// A device of the circle: a keychain in a directory of its own, and the folder that it shares.
struct Device {
    let number: Int
    let root: String
    let keychain: LocalKeychain

    static let numbers = 1...3

    /// Nothing is opened or created.
    init(_ number: Int, in root: String) throws {
        self.number = number
        self.root = root
        keychain = try LocalKeychain.withCheapPasscode(home: root + "/device-\(number)", holder: .processMemory)
    }

    var folder: String { root + "/folder-\(number)" }

    /// The cluster that the file `location` of the root names, or the folder of this device.
    func storage() throws -> any SyncStorage {
        guard let location = try? String(contentsOfFile: root + "/location", encoding: .utf8) else { return FolderStorage(path: folder) }
        return try Self.storage(at: location)
    }

    /// A storage in etcd.
    static func storage(at location: String) throws -> any SyncStorage {
        #if Etcd
        return try EtcdStorage(location: location)
        #else
        throw Failure("\(location) needs a build with the trait Etcd")
        #endif
    }

    // MARK: The circle

    /// Creates the keychains and folders of all devices; the first device founds a circle and admits the others.
    static func makeCircle(in root: String) async throws {
        var devices: [Device] = []
        for number in numbers {
            let device = try Device(number, in: root)
            let home = root + "/device-\(number)"
            try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            _ = try await FolderStorage.make(path: device.folder, outside: [home], options: FolderOptions())
            try device.keychain.startSynchronizing()
            devices.append(device)
        }
        try devices[0].found()
        for device in devices.dropFirst() { try await device.join(devices[0]) }
    }

    private func found() throws {
        let keys = try keychain.makeDeviceKeys()
        let cipher = LocalKeychain.circleCipher
        let nonce = try cipher.randomBytes(32)
        let name = try name
        try keychain.synchronize { ledger, _ throws(KeychainFailure) in
            _ = try Membership.found(name: name, keys: keys, nonce: nonce, cipher: cipher, in: ledger)
        }
    }

    private func join(_ owner: Device) async throws {
        let keys = try keychain.makeDeviceKeys()
        try await owner.perform(.admit(keys.publicKeys, .owner), Clock())
        let (circle, statements) = try owner.keychain.readLedger { ledger throws(KeychainFailure) in
            (try Membership.stored(in: ledger)?.circle, try ledger.statements())
        }
        guard let circle else { throw Failure("the first device is in no circle") }
        let membership = Membership(
            circle: circle, device: DeviceID(of: keys.publicKeys, role: .owner, cipher: LocalKeychain.circleCipher))
        let name = try name
        try keychain.synchronize { ledger, _ throws(KeychainFailure) in
            try membership.store(name: name, statements: statements, in: ledger)
        }
    }

    private var name: DeviceName {
        get throws {
            guard let name = DeviceName("device \(number)") else { throw Failure("a device cannot have its name") }
            return name
        }
    }

    // MARK: The agent

    /// Synchronizes until the process is killed.
    func runAgent(secondsAhead: Int) async throws {
        let clock = Clock(secondsAhead: Double(secondsAhead))
        let agent = try SyncAgent(keychain, on: storage(), clock: clock)
        try await perform(.acceptDeletions, clock)
        try await agent.run()
    }

    /// Synchronizes with what the folder has now, until there is nothing to do.
    ///
    /// The workload deletes more than the guard against accidents permits, so a person confirms whatever it asks for.
    func settle(secondsAhead: Int) async throws {
        let clock = Clock(secondsAhead: Double(secondsAhead))
        let agent = try SyncAgent(keychain, on: storage(), clock: clock)
        var last = -1
        while try last != readObjectCount() {
            last = try readObjectCount()
            try await perform(.acceptDeletions, clock)
            try await agent.runUntilQuiet()
        }
    }

    /// The number of statements and batches that this device has read.
    private func readObjectCount() throws -> Int {
        try keychain.readLedger { ledger throws(KeychainFailure) in
            var count = try ledger.statements().count
            for log in try ledger.logs() { count += try ledger.readBatches(of: log).count }
            return count
        }
    }

    /// Does what a person has asked for.
    private func perform(_ command: SyncCommand, _ clock: Clock) async throws {
        _ = try await EngineHost(keychain, clock: clock).step([.command(command)])
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The clock of an agent, which may be days ahead, so that objects become old enough to be removed from the folder.
struct Clock: WallClock {
    var secondsAhead = 0.0

    func now() -> Double { Date().timeIntervalSinceReferenceDate + secondsAhead }
}
