// SPDX-License-Identifier: Apache-2.0
import Keybag
import KeychainCore
import KeychainTestSupport
import SyncCore
import SyncSimulation
import Testing

@Suite("The format of credentials")
struct ReaderCredentialTests {
    private struct Vectors: Decodable {
        struct Credential: Decodable {
            let secret: Hexadecimal
            let signing: Hexadecimal
            let whenUnlockedBox: Hexadecimal
            let afterFirstUnlockBox: Hexadecimal
            let circle: Hexadecimal
            let name: String
            let expiration: Double
            let location: String
            let admission: Hexadecimal
            let credential: Hexadecimal
        }

        let laneKey: Hexadecimal
        let credential: Credential
    }

    private let cipher = CircleCryptography()

    private func secret(_ bytes: [UInt8]) throws -> SecretBytes {
        // The region has as many bytes.
        try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
    }

    @Test("A credential agrees with another implementation, and so does the note in the statement that admits its reader")
    func vector() throws {
        let vectors = try TestVectors.load("circle-v1.json", as: Vectors.self)
        let expected = vectors.credential
        let credential = try ReaderCredential(try secret(expected.credential.bytes), cipher: cipher)
        let keys = credential.keys.publicKeys
        #expect(keys.signing == expected.signing.bytes)
        #expect(keys.whenUnlockedBox == expected.whenUnlockedBox.bytes && keys.afterFirstUnlockBox == expected.afterFirstUnlockBox.bytes)
        #expect(credential.note.name.text == expected.name && credential.note.expiration == expected.expiration)
        #expect(credential.location == expected.location && credential.circle.role == .reader)
        #expect(credential.circle.membership.circle.bytes == expected.circle.bytes)
        #expect(credential.circle.membership.device == DeviceID(of: keys, role: .reader, cipher: cipher))
        #expect(credential.circle.marks.map(\.number) == [7])
        let encoded = try credential.encoded()
        // The bytes are copied within the closure.
        #expect(unsafe encoded.withBytes { unsafe Array($0) } == expected.credential.bytes)

        let statement = try Statement(expected.admission.bytes, cipher: cipher)
        #expect(statement.encoded == expected.admission.bytes)
        guard case .admit(let admission) = statement.body, let sealed = admission.note else {
            Issue.record("\(statement.body)")
            return
        }
        let header = CredentialNote.header(circle: statement.circle, device: admission.device, laneKey: sealed.laneKey)
        let laneKey = SharedSecretBytes(try secret(vectors.laneKey.bytes))
        let plaintext = try cipher.open(sealed.content, header: header, under: laneKey)
        #expect(try CredentialNote(plaintext) == credential.note)
        #expect(credential.note.encoded == plaintext)
    }

    @Test("A credential that is cut off, is of another secret, or has something after it is refused, and one of a later version says so")
    func alteredCredentials() throws {
        let bytes = try TestVectors.load("circle-v1.json", as: Vectors.self).credential.credential.bytes
        func cause(_ bytes: [UInt8]) throws -> KeychainFailure.Cause? {
            do throws(KeychainFailure) {
                let secret = try unsafe SecretBytes(byteCount: bytes.count) { unsafe $0.copyBytes(from: bytes) }
                _ = try ReaderCredential(secret, cipher: cipher)
                return nil
            } catch {
                return error.cause
            }
        }
        for count in [1, 5, 37, 40, 100, bytes.count / 2, bytes.count - 1] {
            #expect(try cause(Array(bytes.prefix(count))) == .damaged, "\(count) bytes")
        }
        #expect(try cause(bytes + [0]) == .damaged)
        for (index, expected) in [(0, KeychainFailure.Cause.damaged), (4, .newerVersion), (5, .damaged), (36, .damaged)] {
            var altered = bytes
            altered[index] ^= index == 4 ? 3 : 1
            #expect(try cause(altered) == expected, "byte \(index)")
        }
    }
}

/// Engines with the identity of a credential.
@Suite("Machines with one credential")
struct CredentialEngineTests {
    fileprivate static let note = CredentialNote(
        // Never called: the name is valid.
        name: DeviceName("web") ?? { preconditionFailure("the name is valid") }(), expiration: 800_000_000)

    /// A circle whose last owner has made a credential, and machines with it, which know what the credential contains.
    private struct Fleet {
        var bench: EngineBench
        let keys: FakeDeviceKeys
        let device: DeviceID
        private(set) var machines: [Int] = []

        init(_ roles: [DeviceRole] = [.owner], machineCount: Int = 0) throws {
            bench = try EngineBench(roles)
            keys = FakeDeviceKeys(seed: [200])
            device = DeviceID(of: keys.publicKeys, role: .reader, cipher: bench.cipher)
            try bench.exchange(Array(roles.indices))
            try bench.run(roles.count - 1, .command(.admitCredential(keys.publicKeys, CredentialEngineTests.note)))
            for _ in 0..<machineCount { try addMachine() }
        }

        /// Adds a machine with an empty disk.
        @discardableResult
        mutating func addMachine() throws -> Int {
            let machine = EngineBench.Machine(keys: keys, role: .reader, cipher: bench.cipher)
            for stored in bench.machines[0].ledger.statements() {
                let statement = try Statement(stored.bytes, cipher: bench.cipher)
                switch statement.body {
                case .found: machine.ledger.insert(stored)
                case .admit(let admission) where admission.device == device: machine.ledger.insert(stored)
                case .admit, .remove, .rekey, .witness: break
                }
            }
            bench.machines.append(machine)
            machines.append(bench.machines.count - 1)
            bench.start(bench.machines.count - 1, in: bench.machines[0].engine?.membership.circle)
            return bench.machines.count - 1
        }

        func note(knownBy machine: Int) throws -> DeviceNotes.Entry? { try DeviceNotes(in: bench.machines[machine].ledger)[device] }
    }

    @Test("Each owner learns the name and the date of a credential, also one that joins after new keys were made")
    func notes() throws {
        var fleet = try Fleet([.owner, .owner, .owner])
        #expect(try fleet.note(knownBy: 2)?.expiration == Self.note.expiration)
        try fleet.bench.exchange([0, 1, 2])
        try fleet.bench.run(0, .command(.remove(fleet.bench.machines[1].id)))
        let late = try fleet.bench.admit(by: 0)
        let machine = try fleet.addMachine()
        try fleet.bench.exchange([0, 2, late, machine])
        for device in [0, 2, late, machine] {
            let note = try fleet.note(knownBy: device)
            #expect(note?.name == Self.note.name && note?.expiration == Self.note.expiration && note?.seconds == nil, "device \(device)")
        }
    }

    @Test("Only an owner makes a credential", arguments: [DeviceRole.writer, .reader])
    func owners(role: DeviceRole) throws {
        var bench = try EngineBench([.owner, role])
        try bench.exchange([0, 1])
        #expect(throws: KeychainFailure.self) {
            try bench.run(1, .command(.admitCredential(FakeDeviceKeys(seed: [200]).publicKeys, Self.note)))
        }
    }

    /// The admission is of an owner whose own admission is not in the credential.
    @Test("What a machine has written before it knows that it is a reader is kept, and does not wait to be sent")
    func earlierWrites() throws {
        var fleet = try Fleet([.owner, .owner])
        fleet.bench.put(0, 1, date: 5, value: 1)
        try fleet.bench.exchange([0, 1])
        let machine = try fleet.addMachine()
        fleet.bench.put(machine, 1, date: 9, value: 2)
        let before = fleet.bench.objects
        try fleet.bench.exchange([machine])
        #expect(fleet.bench.value(machine, 1) == 1 && fleet.bench.copyCount(machine) == 1)
        #expect(fleet.bench.machines[machine].ledger.state.pending.isEmpty)
        #expect(fleet.bench.objects == before)
    }

    /// What an owner does for one change: the effects by kind, and the bytes of the objects.
    private func cost(ofChangeBeside machineCount: Int) throws -> [String: Int] {
        var fleet = try Fleet(machineCount: machineCount)
        fleet.bench.put(0, 1, date: 5, value: 1)
        try fleet.bench.exchange([0] + fleet.machines)
        let before = fleet.bench.objects
        fleet.bench.put(0, 1, date: 6, value: 2)
        var cost: [String: Int] = [:]
        for effect in try fleet.bench.run(0, .itemsChanged) + fleet.bench.run(0) {
            switch effect {
            case .list: cost["listings", default: 0] += 1
            case .read: cost["reads", default: 0] += 1
            case .create(_, let bytes):
                cost["created objects", default: 0] += 1
                cost["created bytes", default: 0] += bytes.count
            case .remove: cost["removals", default: 0] += 1
            case .wake, .writeCheckpoint, .alarm: break
            }
        }
        let after = fleet.bench.objects
        cost["new objects"] = after.count - before.count
        cost["statements"] = fleet.bench.machines[0].ledger.statements().count
        for machine in fleet.machines {
            try fleet.bench.run(machine)
            #expect(fleet.bench.value(machine, 1) == 2)
            #expect(fleet.bench.machines[machine].alarms.isEmpty)
        }
        #expect(fleet.bench.objects == after, "a reader writes nothing")
        return cost
    }

    @Test("What a writer does for a change does not grow with the number of machines that read it")
    func costOfWriter() throws {
        let alone = try cost(ofChangeBeside: 0)
        #expect(alone["created objects"] == 1 && alone["new objects"] == 1)
        for count in [1, 60] { #expect(try cost(ofChangeBeside: count) == alone, "\(count) machines") }
    }
}
