// SPDX-License-Identifier: Apache-2.0
#if !canImport(Darwin)
internal import KeychainSync

// Rules about listings, about calls at the same time, and about hints.

extension SyncStorageContract {
    static let listingRules = folderRules + otherListingRules

    private static let folderRules = ["m", "c", "p", "j", "b", SampleObjects.device, SampleObjects.log].map { folder in
        SyncStorageContract("\(folder) lists the objects in it and below it, and no others") {
            storage, other, findings throws(SyncStorageError) in
            let names = SampleObjects.names() + SampleObjects.names()
            for name in names { _ = try await storage.create(name, [1]) }
            for name in SampleObjects.names() { _ = try await storage.create(SampleObjects.circle + "/" + name, [1]) }
            try await findings.expectListing(names.filter { $0.hasPrefix(folder + "/") }, in: folder, of: other)
        }
    }

    private static let otherListingRules = [
        SyncStorageContract("An empty storage and its folders list nothing") { storage, _, findings throws(SyncStorageError) in
            for folder in ["", "m", "b", SampleObjects.log, SampleObjects.circle, SampleObjects.circle + "/p"] {
                try await findings.expectListing([], in: folder, of: storage)
            }
        },
        SyncStorageContract("The empty string lists all objects, in circles and outside") {
            storage, other, findings throws(SyncStorageError) in
            let names = SampleObjects.names() + SampleObjects.names().map { SampleObjects.circle + "/" + $0 }
            for name in names { _ = try await storage.create(name, [1]) }
            try await findings.expectListing(names, in: "", of: other)
        },
        SyncStorageContract("A circle lists its objects, and not those of another circle") {
            storage, other, findings throws(SyncStorageError) in
            let own = SampleObjects.names().map { SampleObjects.circle + "/" + $0 }
            let foreign = SampleObjects.names().map { String(SampleObjects.circle.reversed()) + "/" + $0 } + SampleObjects.names()
            for name in own + foreign { _ = try await storage.create(name, [1]) }
            try await findings.expectListing(own, in: SampleObjects.circle, of: other)
            for folder in ["b", "m", "j"] {
                let folder = SampleObjects.circle + "/" + folder
                try await findings.expectListing(own.filter { $0.hasPrefix(folder + "/") }, in: folder, of: other)
            }
        },
        SyncStorageContract("A log lists its batches, and not those of another log of the device") {
            storage, other, findings throws(SyncStorageError) in
            let next = SampleObjects.device + "/fedcba9876543210fedcba9876543211"
            let (own, foreign) = ((1...5).map { SampleObjects.batch($0) }, (1...5).map { SampleObjects.batch($0, in: next) })
            for name in own + foreign { _ = try await storage.create(name, [1]) }
            try await findings.expectListing(own, in: SampleObjects.log, of: other)
            try await findings.expectListing(foreign, in: next, of: other)
            try await findings.expectListing(own + foreign, in: SampleObjects.device, of: other)
        },
        SyncStorageContract("Each of a hundred objects is listed once") { storage, other, findings throws(SyncStorageError) in
            let names = (1...100).map { SampleObjects.batch($0) }
            for name in names { _ = try await storage.create(name, [1]) }
            try await findings.expectListing(names, in: "b", of: other)
        },
    ]

    static let concurrencyRules = [
        SyncStorageContract("Eight writers of one object all succeed, and its bytes are complete") {
            storage, other, findings throws(SyncStorageError) in
            for _ in 0..<10 {
                let (name, bytes) = (SampleObjects.batch(1), SampleObjects.bytes(50_000))
                let results = await atOnce(8) { number throws(SyncStorageError) in
                    try await (number % 2 == 0 ? storage : other).create(name, bytes)
                }
                for case .failure(let error) in results { findings.report("a writer failed: \(error)") }
                findings.expect(results.contains(.success(.created)), "no writer created the object")
                findings.expect(try await storage.read(name, atMost: 50_000) == bytes, "other bytes")
            }
        },
        SyncStorageContract("Sixty-four writers of different objects all create theirs") {
            storage, other, findings throws(SyncStorageError) in
            let names = (1...64).map { SampleObjects.batch($0) }
            let results = await atOnce(64) { number throws(SyncStorageError) in
                try await (number % 2 == 0 ? storage : other).create(names[number], [UInt8(number)])
            }
            for result in results where result != .success(.created) { findings.report("\(result)") }
            try await findings.expectListing(names, in: "", of: other)
            for (number, name) in names.enumerated() {
                findings.expect(try await other.read(name, atMost: 9) == [UInt8(number)], "\(name) has other bytes")
            }
        },
        SyncStorageContract("Eight devices that remove one object all succeed") { storage, other, findings throws(SyncStorageError) in
            let name = SampleObjects.batch(1)
            _ = try await storage.create(name, [1])
            let results = await atOnce(8) { number throws(SyncStorageError) in try await (number % 2 == 0 ? storage : other).remove(name) }
            for case .failure(let error) in results { findings.report("a removal failed: \(error)") }
            try await findings.expectListing([], in: "", of: other)
        },
        SyncStorageContract("A reader sees the whole object or none") { storage, other, findings throws(SyncStorageError) in
            let bytes = SampleObjects.bytes(200_000)
            let names = (1...20).map { SampleObjects.batch($0) }
            let reader = Task { () -> String? in
                for name in names {
                    while true {
                        guard let found = try? await other.read(name, atMost: bytes.count) else {
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
        SyncStorageContract("A listing while others are created has all objects from before") {
            storage, other, findings throws(SyncStorageError) in
            let names = (1...20).map { SampleObjects.batch($0) }
            for name in names { _ = try await storage.create(name, [1]) }
            let writer = Task {
                for number in 21...60 { _ = try? await storage.create(SampleObjects.batch(UInt64(number)), [1]) }
            }
            for _ in 0..<10 {
                let found = try await other.list("b")
                findings.expect(Set(names).isSubset(of: found), "a listing lacks objects")
                findings.expect(Set(found).count == found.count, "a listing repeats an object")
            }
            await writer.value
        },
    ]

    static let hintRules = [
        SyncStorageContract("A hint follows each creation") { storage, _, findings throws(SyncStorageError) in
            try await findings.expectHints(of: storage) { number throws(SyncStorageError) in
                _ = try await storage.create(SampleObjects.batch(number), [1])
            }
        },
        SyncStorageContract("A hint follows each creation by another device") { storage, other, findings throws(SyncStorageError) in
            try await findings.expectHints(of: storage) { number throws(SyncStorageError) in
                _ = try await other.create(SampleObjects.batch(number), [1])
            }
        },
        SyncStorageContract("A hint follows each removal") { storage, other, findings throws(SyncStorageError) in
            let names = (1...3).map { SampleObjects.batch($0) }
            for name in names { _ = try await storage.create(name, [1]) }
            try await findings.expectHints(of: storage) { number throws(SyncStorageError) in try await other.remove(names[Int(number) - 1])
            }
        },
        SyncStorageContract("A hint follows the first object of a circle") { storage, other, findings throws(SyncStorageError) in
            try await findings.expectHints(of: storage) { number throws(SyncStorageError) in
                let circle = "0123456789abcdef0123456789abcde" + String(number)
                _ = try await other.create(circle + "/" + SampleObjects.batch(number), [1])
            }
        },
        SyncStorageContract("Hints that name new objects name all of them") {
            storage, other, findings throws(SyncStorageError) in
            var hints = storage.changes().makeAsyncIterator()
            // The first one may stand for anything.
            _ = try await other.create(SampleObjects.batch(1), [1])
            findings.expect(await hints.next() != nil, "the hints ended")
            var missing = Set((2...4).map { SampleObjects.batch($0) })
            for name in missing.sorted() { _ = try await other.create(name, [1]) }
            while !missing.isEmpty, let change = await hints.next() {
                switch change {
                case .created(let names): missing.subtract(names)
                case .unknown, .replaced: missing = []
                }
            }
            findings.expect(missing.isEmpty, "the hints ended")
        },
        SyncStorageContract("Two streams both have hints, and the end of one does not end the other") {
            storage, other, findings throws(SyncStorageError) in
            let canceled = Task {
                for await _ in storage.changes() {}
                return true
            }
            var hints = storage.changes().makeAsyncIterator()
            _ = try await other.create(SampleObjects.batch(1), [1])
            findings.expect(await hints.next() != nil, "the hints ended")
            canceled.cancel()
            findings.expect(await canceled.value, "the canceled stream goes on")
            _ = try await other.create(SampleObjects.batch(2), [1])
            findings.expect(await hints.next() != nil, "the hints ended with those of the other stream")
        },
    ]
}

extension ContractFindings {
    /// Reports a violation unless a hint comes after each of three changes.
    ///
    /// A storage that gives none hangs, and the time limit of the test ends it.
    fileprivate mutating func expectHints(
        of storage: any SyncStorage, after change: (UInt64) async throws(SyncStorageError) -> Void
    ) async throws(SyncStorageError) {
        var hints = storage.changes().makeAsyncIterator()
        for number: UInt64 in 1...3 {
            try await change(number)
            expect(await hints.next() != nil, "the hints ended")
        }
    }
}

/// Runs `body` with the numbers from zero, at the same time, and returns the results.
private func atOnce<Value: Sendable>(
    _ count: Int, _ body: @escaping @Sendable (Int) async throws(SyncStorageError) -> Value
) async -> [Result<Value, SyncStorageError>] {
    await withTaskGroup(of: Result<Value, SyncStorageError>.self) { group in
        for number in 0..<count {
            group.addTask {
                do throws(SyncStorageError) { return .success(try await body(number)) } catch { return .failure(error) }
            }
        }
        return await group.reduce(into: []) { $0.append($1) }
    }
}
#endif
