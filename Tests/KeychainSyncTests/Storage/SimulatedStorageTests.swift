// SPDX-License-Identifier: Apache-2.0
import Contracts
import KeychainSync
import Synchronization
import Testing

@testable import SyncSimulation

/// The storage of the simulation, as two devices see it that see everything at once.
///
/// The model has neither circles nor checks of names, because the engine uses it without either; this has both, as every storage does.
private final class SimulatedDeviceStorage: SyncStorage {
    let location = "simulation"
    private let device: Int
    private let models: ModelBox

    /// The model of each circle, and of what is outside of circles.
    final class ModelBox: Sendable {
        let models = Mutex<[Substring: SimulatedStorage]>([:])
    }

    init(device: Int, models: ModelBox) {
        self.device = device
        self.models = models
    }

    private func access<Value>(_ circle: Substring, _ body: (inout SimulatedStorage) -> sending Value) -> Value {
        models.models.withLock { body(&$0[circle, default: SimulatedStorage(deviceCount: 2)]) }
    }

    /// Splits off the circle, with a slash at its end.
    private func split(_ name: String) -> (circle: Substring, name: String) {
        guard name.prefix(33).count == 33, name.prefix(33).last == "/" else {
            return name.count == 32 ? (name + "/", "") : ("", name)
        }
        return (name.prefix(33), String(name.dropFirst(33)))
    }

    func list(_ folder: String) async throws(SyncStorageError) -> [String] {
        try StorageName.requireFolder(folder)
        let (circle, folder) = split(folder)
        let circles = circle.isEmpty && folder.isEmpty ? models.models.withLock { Array($0.keys) } : [circle]
        return circles.flatMap { circle in
            access(circle) { model -> [String] in
                model.showAll(to: device)
                return ["m", "b", "c", "p", "j"].flatMap { model.list($0, for: device) }
                    .filter { folder.isEmpty || $0.hasPrefix(folder + "/") }.map { circle + $0 }
            }
        }
    }

    func read(_ name: String, atMost byteCount: Int) async throws(SyncStorageError) -> [UInt8]? {
        try StorageName.requireObject(name)
        let (circle, name) = split(name)
        return access(circle) { model in
            model.showAll(to: device)
            return model.read(name, for: device).flatMap { $0.count <= byteCount ? $0 : nil }
        }
    }

    func create(_ name: String, _ bytes: [UInt8]) async throws(SyncStorageError) -> SyncCreation {
        try StorageName.requireObject(name)
        let (circle, name) = split(name)
        let (isNew, found) = access(circle) { model in
            let isNew = model.objects[name] == nil
            model.create(name, bytes, by: device)
            return (isNew, model.read(name, for: device))
        }
        guard found == bytes else { throw SyncStorageError(.failed, "other bytes") }
        return isNew ? .created : .alreadyThere
    }

    func remove(_ name: String) async throws(SyncStorageError) {
        try StorageName.requireObject(name)
        let (circle, name) = split(name)
        access(circle) { $0.remove(name) }
    }

    /// The simulation wakes devices itself.
    func changes() -> AsyncStream<SyncStorageChange> { AsyncStream { _ in } }
}

@Suite("The storage of the simulation", .timeLimit(.minutes(10)))
struct SimulatedStorageTests {
    @Test("It follows the rules about objects that real storages follow", arguments: SyncStorageContract.objectRules)
    func contract(rule: SyncStorageContract) async {
        let models = SimulatedDeviceStorage.ModelBox()
        let violations = await rule.violations(
            of: SimulatedDeviceStorage(device: 0, models: models), other: SimulatedDeviceStorage(device: 1, models: models))
        #expect(violations == [])
    }
}
