// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainSync

// Rules about single calls, one after the other.

extension SyncStorageContract {
    static let creationRules = kindRules + sizeRules + repetitionRules

    private static let kindRules = SampleObjects.Kind.allCases.flatMap { kind in
        [("", "outside of a circle"), (SampleObjects.circle + "/", "in a circle")].map { prefix, place in
            SyncStorageContract("A new \(kind) \(place) is created, listed, read by another device, and removed") {
                storage, other, findings throws(SyncStorageError) in
                let (name, bytes) = (prefix + SampleObjects.name(kind), SampleObjects.bytes(700))
                findings.expect(try await storage.create(name, bytes) == .created, "it is not new")
                findings.expect(try await other.list("") == [name], "it is not listed")
                findings.expect(try await other.read(name, atMost: 700) == bytes, "it has other bytes")
                try await storage.remove(name)
                findings.expect(try await other.read(name, atMost: 700) == nil, "it is read although it was removed")
            }
        }
    }

    private static let sizeRules = [0, 1, 4_096, 65_537, 1 << 18, 1 << 20 + 4_000].map { count in
        SyncStorageContract("An object of \(count) bytes is read as it was created") { storage, other, findings throws(SyncStorageError) in
            let (name, bytes) = (SampleObjects.name(.piece), SampleObjects.bytes(count))
            findings.expect(try await storage.create(name, bytes) == .created, "it is not new")
            findings.expect(try await other.read(name, atMost: count) == bytes, "it has other bytes")
            findings.expect(try await other.create(name, bytes) == .alreadyThere, "it is not recognized")
        }
    }

    private static let repetitionRules = [
        SyncStorageContract("Every byte is kept as it is") { storage, other, findings throws(SyncStorageError) in
            let bytes = (0...255).map { UInt8($0) } + [0, 0, 10, 13, 10, 255, 254]
            _ = try await storage.create(SampleObjects.batch(1), bytes)
            let name = try await other.list("").first ?? ""
            findings.expect(try await other.read(name, atMost: 1_000) == bytes, "it has other bytes")
        },
        SyncStorageContract("An object that is created again by its device is already there") {
            storage, _, findings throws(SyncStorageError) in
            for name in SampleObjects.names() {
                findings.expect(try await storage.create(name, [1, 2]) == .created, "\(name) is not new")
                findings.expect(try await storage.create(name, [1, 2]) == .alreadyThere, "\(name) is created twice")
                findings.expect(try await storage.create(name, [1, 2]) == .alreadyThere, "\(name) is created three times")
            }
        },
        SyncStorageContract("An object that is created again by another device is already there") {
            storage, other, findings throws(SyncStorageError) in
            let name = SampleObjects.batch(1)
            findings.expect(try await storage.create(name, [1, 2]) == .created, "it is not new")
            findings.expect(try await other.create(name, [1, 2]) == .alreadyThere, "it is created twice")
        },
        refusal("shorter bytes", of: SampleObjects.bytes(600)) { Array($0.dropLast()) },
        refusal("longer bytes", of: SampleObjects.bytes(600)) { $0 + [0] },
        refusal("as many other bytes", of: SampleObjects.bytes(600)) { _ in SampleObjects.bytes(600) },
        refusal("no bytes", of: SampleObjects.bytes(600)) { _ in [] },
        refusal("bytes in place of none", of: []) { _ in [1] },
        refusal("one other bit", of: SampleObjects.bytes(100_000)) { $0.dropLast() + [($0.last ?? 0) ^ 1] },
        SyncStorageContract("Objects of different kinds have names of their own") { storage, other, findings throws(SyncStorageError) in
            let hash = String(SampleObjects.name(.piece).dropFirst(2))
            let objects: [(String, [UInt8])] = [("m/" + hash, [1]), ("c/" + hash, [2]), ("p/" + hash, [3])]
            for (name, bytes) in objects {
                findings.expect(try await storage.create(name, bytes) == .created, "\(name) is not new")
            }
            for (name, bytes) in objects { findings.expect(try await other.read(name, atMost: 9) == bytes, "\(name) has other bytes") }
        },
        SyncStorageContract("Objects of different circles have names of their own") { storage, other, findings throws(SyncStorageError) in
            let name = SampleObjects.name(.statement)
            let circles = ["", SampleObjects.circle + "/", String(SampleObjects.circle.reversed()) + "/"]
            let objects: [(String, [UInt8])] = zip(circles, 1...).map { ($0 + name, [$1]) }
            for (name, bytes) in objects {
                findings.expect(try await storage.create(name, bytes) == .created, "\(name) is not new")
            }
            for (name, bytes) in objects { findings.expect(try await other.read(name, atMost: 9) == bytes, "\(name) has other bytes") }
        },
    ]

    /// A rule that an object is not replaced by other bytes.
    private static func refusal(
        _ description: String, of bytes: [UInt8], _ change: @escaping @Sendable ([UInt8]) -> [UInt8]
    ) -> SyncStorageContract {
        SyncStorageContract("An object is not replaced: \(description)") { storage, other, findings throws(SyncStorageError) in
            let name = SampleObjects.batch(1)
            _ = try await storage.create(name, bytes)
            for device in [storage, other] {
                await findings.expect(.failed, "the creation of other bytes") { () throws(SyncStorageError) in
                    _ = try await device.create(name, change(bytes))
                }
            }
            findings.expect(try await other.read(name, atMost: bytes.count + 1) == bytes, "the object was replaced")
            findings.expect(try await storage.create(name, bytes) == .alreadyThere, "the object is not recognized")
        }
    }

    static let readingRules = [
        SyncStorageContract("A missing object is not read") { storage, _, findings throws(SyncStorageError) in
            for name in SampleObjects.names() {
                findings.expect(try await storage.read(name, atMost: 1_000) == nil, "\(name) is read")
                findings.expect(try await storage.read(SampleObjects.circle + "/" + name, atMost: 1_000) == nil, "\(name) is read")
            }
        },
        SyncStorageContract("A missing object is not read from a folder with others") { storage, other, findings throws(SyncStorageError) in
            for name in SampleObjects.names() { _ = try await storage.create(name, [1]) }
            for name in SampleObjects.names() { findings.expect(try await other.read(name, atMost: 1_000) == nil, "\(name) is read") }
        },
        SyncStorageContract("An object that is larger than accepted is not read") { storage, other, findings throws(SyncStorageError) in
            for name in SampleObjects.names() {
                _ = try await storage.create(name, SampleObjects.bytes(100))
                for limit in [0, 1, 99] { findings.expect(try await other.read(name, atMost: limit) == nil, "\(name) is read") }
            }
        },
        SyncStorageContract("An object that is as large as accepted is read") { storage, other, findings throws(SyncStorageError) in
            for name in SampleObjects.names() {
                let bytes = SampleObjects.bytes(100)
                _ = try await storage.create(name, bytes)
                for limit in [100, 101, 1 << 30] {
                    findings.expect(try await other.read(name, atMost: limit) == bytes, "\(name) is not read")
                }
            }
        },
        SyncStorageContract("An empty object is read, and is not a missing one") { storage, other, findings throws(SyncStorageError) in
            let name = SampleObjects.batch(1)
            _ = try await storage.create(name, [])
            findings.expect(try await other.read(name, atMost: 0) == [], "it is not read")
            findings.expect(try await other.list("b") == [name], "it is not listed")
        },
        SyncStorageContract("Reading changes nothing") { storage, other, findings throws(SyncStorageError) in
            let (name, bytes) = (SampleObjects.batch(1), SampleObjects.bytes(10_000))
            _ = try await storage.create(name, bytes)
            for _ in 0..<5 { findings.expect(try await other.read(name, atMost: 10_000) == bytes, "it has other bytes") }
            try await findings.expectListing([name], in: "", of: storage)
        },
    ]

    static let removalRules = [
        SyncStorageContract("A removed object is neither read nor listed") { storage, other, findings throws(SyncStorageError) in
            for name in SampleObjects.names() {
                _ = try await storage.create(name, [1])
                try await storage.remove(name)
                findings.expect(try await other.read(name, atMost: 9) == nil, "\(name) is read")
                try await findings.expectListing([], in: "", of: other)
            }
        },
        SyncStorageContract("Removing an object that never existed succeeds") { storage, _, findings throws(SyncStorageError) in
            for name in SampleObjects.names() {
                try await storage.remove(name)
                try await storage.remove(SampleObjects.circle + "/" + name)
            }
            try await findings.expectListing([], in: "", of: storage)
        },
        SyncStorageContract("Removing an object twice succeeds, also by another device") {
            storage, other, findings throws(SyncStorageError) in
            let name = SampleObjects.batch(1)
            _ = try await storage.create(name, [1])
            try await storage.remove(name)
            try await storage.remove(name)
            try await other.remove(name)
            findings.expect(try await storage.read(name, atMost: 9) == nil, "it is read")
        },
        SyncStorageContract("A removed object is created again, also with other bytes") {
            storage, other, findings throws(SyncStorageError) in
            for name in SampleObjects.names() {
                _ = try await storage.create(name, [1])
                try await storage.remove(name)
                findings.expect(try await storage.create(name, [2, 2]) == .created, "\(name) is not new")
                findings.expect(try await other.read(name, atMost: 9) == [2, 2], "\(name) has other bytes")
            }
        },
        SyncStorageContract("Removing an object leaves the others") { storage, other, findings throws(SyncStorageError) in
            let names = SampleObjects.names() + (1...9).map { SampleObjects.batch($0) }
            for name in names { _ = try await storage.create(name, [1]) }
            for name in names.dropFirst(3) { try await storage.remove(name) }
            try await findings.expectListing(Array(names.prefix(3)), in: "", of: other)
        },
    ]

    static let nameRules = [
        nameRule("created") { storage, name throws(SyncStorageError) in _ = try await storage.create(name, []) },
        nameRule("read") { storage, name throws(SyncStorageError) in _ = try await storage.read(name, atMost: 9) },
        nameRule("removed") { storage, name throws(SyncStorageError) in try await storage.remove(name) },
        SyncStorageContract("A folder that objects cannot have is not listed") { storage, _, findings throws(SyncStorageError) in
            for folder in ["/", "..", "b/..", "m/", ".", "M", SampleObjects.names()[0], "b/" + SampleObjects.circle + "/x"] {
                await findings.expect(.failed, "listing \(folder)") { () throws(SyncStorageError) in _ = try await storage.list(folder) }
            }
        },
    ]

    private static func nameRule(
        _ operation: String, _ body: @escaping @Sendable (any SyncStorage, String) async throws(SyncStorageError) -> Void
    ) -> SyncStorageContract {
        SyncStorageContract("What is not the name of an object is not \(operation)") { storage, _, findings throws(SyncStorageError) in
            let name = SampleObjects.names()[0]
            let others = ["", "/", "m", "/" + name, "../" + name, name + "/..", name + ".tmp", name.uppercased(), name + "\0", "a/" + name]
            for other in others {
                await findings.expect(.failed, other.debugDescription) { () throws(SyncStorageError) in try await body(storage, other) }
            }
            findings.expect(try await storage.list("") == [], "something was created")
        }
    }
}
#endif
