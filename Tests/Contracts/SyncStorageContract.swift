// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainCore
package import KeychainSync

/// A rule that every `SyncStorage` follows, with a check.
///
/// Run all of `SyncStorageContract.rules`, each on an empty storage.
package struct SyncStorageContract: Sendable, CustomStringConvertible {
    private typealias Check = @Sendable (any SyncStorage, inout ContractFindings) async throws(SyncStorageError) -> Void

    /// The rule, in one sentence.
    package let description: String
    private let check: Check

    private init(_ description: String, _ check: @escaping Check) {
        self.description = description
        self.check = check
    }

    /// All rules; each needs an empty storage.
    package static let rules = objectRules + concurrencyRules

    /// Returns a sentence for each violation of the rule by `storage`; empty if it follows the rule.
    package func violations(of storage: any SyncStorage) async -> [String] {
        var findings = ContractFindings()
        do throws(SyncStorageError) {
            try await check(storage, &findings)
        } catch {
            findings.report("unexpected error \(error.code): \(error)")
        }
        return findings.violations
    }
}

/// Names and contents of objects.
package enum SampleObjects {
    /// Returns a new name of each kind; all batches are of one log.
    package static func names() -> [String] {
        let hash = { Identifier128.random().hexadecimal + Identifier128.random().hexadecimal }
        return ["m/", "c/", "p/", "j/0123456789abcdef0123456789abcdef/"].map { $0 + hash() } + [batch(.random(in: 1 ... .max))]
    }

    /// Returns a new name of a batch with this number.
    package static func batch(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return log + "/" + String(repeating: "0", count: 16 - digits.count) + digits + "-" + Identifier128.random().hexadecimal
    }

    /// The folder of the batches.
    package static let log = "b/0123456789abcdef0123456789abcdef/fedcba9876543210fedcba9876543210"
    package static let circle = "00112233445566778899aabbccddeeff"

    /// Returns new bytes.
    package static func bytes(_ count: Int) -> [UInt8] {
        // A random start and a linear congruential generator: one random number for each byte takes seconds.
        var state = UInt64.random(in: 0 ... .max)
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
    }
}

extension SyncStorageContract {
    private static let objectRules = [
        SyncStorageContract("An object that was created is listed and read, and is not created twice") {
            storage, findings throws(SyncStorageError) in
            for name in SampleObjects.names() + SampleObjects.names().map({ SampleObjects.circle + "/" + $0 }) {
                for count in [0, 1, 700, 1 << 20 + 4_000] {
                    let bytes = SampleObjects.bytes(count)
                    findings.expect(try await storage.create(name, bytes) == .created, "\(name) is not new")
                    findings.expect(try await storage.create(name, bytes) == .alreadyThere, "\(name) is not there")
                    findings.expect(try await storage.read(name, atMost: count) == bytes, "\(name) has other bytes")
                    findings.expect(try await storage.list("").contains(name), "\(name) is not listed")
                    try await storage.remove(name)
                }
            }
        },
        SyncStorageContract("An object is not replaced by other bytes") { storage, findings throws(SyncStorageError) in
            for name in SampleObjects.names() {
                let bytes = SampleObjects.bytes(600)
                _ = try await storage.create(name, bytes)
                for other in [[], Array(bytes.dropLast()), bytes + [0], SampleObjects.bytes(600)] {
                    await findings.expect(.failed, "creation of \(other.count) other bytes") { () throws(SyncStorageError) in
                        _ = try await storage.create(name, other)
                    }
                }
                findings.expect(try await storage.read(name, atMost: 1_000) == bytes, "the object was replaced")
            }
        },
        SyncStorageContract("A listing has the objects of its folder and of those below it") { storage, findings throws(SyncStorageError) in
            findings.expect(try await storage.list("") == [], "an empty storage has objects")
            findings.expect(try await storage.list("b") == [], "a missing folder has objects")
            let names = SampleObjects.names() + SampleObjects.names() + [SampleObjects.circle + "/" + SampleObjects.batch(1)]
            for name in names { _ = try await storage.create(name, [1]) }
            let device = String(SampleObjects.log.dropLast(33))
            for folder in ["", "m", "c", "p", "j", "b", device, SampleObjects.log, SampleObjects.circle, SampleObjects.circle + "/b"] {
                let expected = names.filter { folder.isEmpty || $0.hasPrefix(folder + "/") }
                findings.expect(try await storage.list(folder).sorted() == expected.sorted(), "the objects in \(folder)")
            }
        },
        SyncStorageContract("A missing object and one that is too large are not read") { storage, findings throws(SyncStorageError) in
            for name in SampleObjects.names() {
                findings.expect(try await storage.read(name, atMost: 1_000) == nil, "a missing object is read")
                _ = try await storage.create(name, SampleObjects.bytes(100))
                findings.expect(try await storage.read(name, atMost: 99) == nil, "an object that is too large is read")
                findings.expect(try await storage.read(name, atMost: 100) != nil, "an object of the largest size is not read")
            }
        },
        SyncStorageContract("A removed object is gone, and removing a missing one succeeds") { storage, findings throws(SyncStorageError) in
            for name in SampleObjects.names() {
                try await storage.remove(name)
                _ = try await storage.create(name, [1])
                try await storage.remove(name)
                findings.expect(try await storage.read(name, atMost: 9) == nil, "a removed object is read")
                findings.expect(try await storage.list("") == [], "a removed object is listed")
                try await storage.remove(name)
                findings.expect(try await storage.create(name, [2]) == .created, "a removed object is not created again")
                try await storage.remove(name)
            }
        },
        SyncStorageContract("Names that are not those of objects are refused") { storage, findings throws(SyncStorageError) in
            let name = SampleObjects.names()[0]
            let others = ["", "/", "m", "/" + name, "../" + name, name + "/..", name + ".tmp", name.uppercased(), name + "\0", "a/" + name]
            for other in others {
                await findings.expect(.failed, "creating \(other)") { () throws(SyncStorageError) in _ = try await storage.create(other, [])
                }
                await findings.expect(.failed, "reading \(other)") { () throws(SyncStorageError) in
                    _ = try await storage.read(other, atMost: 9)
                }
                await findings.expect(.failed, "removing \(other)") { () throws(SyncStorageError) in try await storage.remove(other) }
            }
            for folder in ["/", "..", "b/..", "m/", ".", "M", name] {
                await findings.expect(.failed, "listing \(folder)") { () throws(SyncStorageError) in _ = try await storage.list(folder) }
            }
        },
    ]

    private static let concurrencyRules = [
        SyncStorageContract("Eight writers of one object all succeed, and its bytes are complete") {
            storage, findings throws(SyncStorageError) in
            for _ in 0..<10 {
                let name = SampleObjects.batch(1)
                let bytes = SampleObjects.bytes(50_000)
                let results = await withTaskGroup(of: Result<SyncCreation, SyncStorageError>.self) { group in
                    for _ in 0..<8 {
                        group.addTask {
                            do throws(SyncStorageError) { return .success(try await storage.create(name, bytes)) } catch {
                                return .failure(error)
                            }
                        }
                    }
                    return await group.reduce(into: []) { $0.append($1) }
                }
                for case .failure(let error) in results { findings.report("a writer failed: \(error)") }
                findings.expect(results.contains(.success(.created)), "no writer created the object")
                findings.expect(try await storage.read(name, atMost: 50_000) == bytes, "other bytes")
            }
        },
        SyncStorageContract("A reader sees the whole object or none") { storage, findings throws(SyncStorageError) in
            let bytes = SampleObjects.bytes(200_000)
            let names = (1...20).map { SampleObjects.batch($0) }
            let reader = Task { () -> String? in
                for name in names {
                    while true {
                        guard let found = try? await storage.read(name, atMost: bytes.count) else {
                            if Task.isCancelled { return nil }
                            continue
                        }
                        guard found == bytes else { return "read \(found.count) of \(bytes.count) bytes" }
                        break
                    }
                }
                return nil
            }
            do throws(SyncStorageError) {
                for name in names { _ = try await storage.create(name, bytes) }
            } catch {
                reader.cancel()
                throw error
            }
            if let violation = await reader.value { findings.report(violation) }
        },
        SyncStorageContract("A hint follows the creation of an object") { storage, findings throws(SyncStorageError) in
            var hints = storage.changes().makeAsyncIterator()
            _ = try await storage.create(SampleObjects.batch(1), [1])
            findings.expect(await hints.next() != nil, "the hints ended")
        },
    ]
}

extension ContractFindings {
    /// Reports a violation unless `body` fails with `code`; `operation` names the body in the report.
    fileprivate mutating func expect(
        _ code: SyncStorageError.Code, _ operation: String, _ body: () async throws(SyncStorageError) -> Void
    ) async {
        do throws(SyncStorageError) {
            try await body()
            report("\(operation) succeeded")
        } catch {
            if error.code != code { report("\(operation) failed with \(error.code), not \(code)") }
        }
    }
}
#endif
