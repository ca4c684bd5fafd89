// SPDX-License-Identifier: Apache-2.0
import KeychainTestSupport
import PowerCutSimulation
import Testing

@Suite("Model of a disk that loses power")
struct DiskModelTests {
    private static let rootInode: UInt64 = 1

    private func model(_ events: [DiskEvent]) throws -> DiskModel {
        var model = DiskModel(root: "/r", rootInode: Self.rootInode)
        for event in events { try model.apply(event) }
        return model
    }

    private func write(_ text: String, at offset: Int = 0, inode: UInt64 = 2) -> DiskEvent {
        .written(inode: inode, offset: offset, bytes: Array(text.utf8))
    }

    private let made = DiskEvent.fileMade(path: "/r/a", inode: 2)

    @Test("A flushed file survives only if its directory was flushed too")
    func nameNeedsFlush() throws {
        let events = [made, write("text"), .flushed(inode: 2)]
        #expect(try model(events).image(.nothing).contents == [:])
        #expect(try model(events + [.flushed(inode: Self.rootInode)]).image(.nothing).contents == ["a": "text"])
    }

    @Test("A flushed name refers to an empty file if the content was not flushed")
    func contentNeedsFlush() throws {
        let model = try model([made, write("text"), .flushed(inode: Self.rootInode)])
        #expect(model.image(.nothing).contents == ["a": ""])
        #expect(model.image(.everything).contents == ["a": "text"])
    }

    @Test("Writes, truncations, and removals after the flush can be lost, which leaves the earlier state")
    func laterChanges() throws {
        let durable = [made, write("text"), .flushed(inode: 2), .flushed(inode: Self.rootInode)]
        for change in [write("next"), .truncated(inode: 2, byteCount: 1), .removed(path: "/r/a"), .renamed(from: "/r/a", to: "/r/b")] {
            #expect(try model(durable + [change]).image(.nothing).contents == ["a": "text"])
        }
        #expect(try model(durable + [.truncated(inode: 2, byteCount: 1)]).image(.everything).contents == ["a": "t"])
        #expect(try model(durable + [.renamed(from: "/r/a", to: "/r/b")]).image(.everything).contents == ["b": "text"])
        #expect(try model(durable + [.removed(path: "/r/a")]).image(.everything).contents == [:])
    }

    @Test("A rename is atomic; a link and the removal of the first name are separate")
    func renameAndLink() throws {
        let durable = [made, write("text"), .flushed(inode: 2), .flushed(inode: Self.rootInode)]
        let renamed = try images(model(durable + [.renamed(from: "/r/a", to: "/r/b")]))
        #expect(renamed == [["a": "text"], ["b": "text"]])
        let linked = try images(model(durable + [.linked(from: "/r/a", to: "/r/b"), .removed(path: "/r/a")]))
        #expect(linked == [["a": "text"], ["a": "text", "b": "text"], ["b": "text"], [:]])
    }

    @Test("Unflushed writes survive independently, in sectors of 512 bytes")
    func tornWrites() throws {
        let old = String(repeating: "o", count: 1_600)
        let durable = [made, write(old), .flushed(inode: 2), .flushed(inode: Self.rootInode)]
        // From 500 to 1124: the end of the first sector, the whole second one, and the beginning of the third.
        let found = try images(model(durable + [write(String(repeating: "n", count: 624), at: 500)]))
        #expect(found.count == 8)
        for contents in found {
            let text = Array(try #require(contents["a"]))
            #expect(text.count == 1_600 && text[..<500].allSatisfy { $0 == "o" } && text[1_124...].allSatisfy { $0 == "o" })
            for sector in [500..<512, 512..<1_024, 1_024..<1_124] { #expect(Set(text[sector]).count == 1) }
        }
        let parts = try images(model([made, .flushed(inode: Self.rootInode), write("a", at: 0), write("b", at: 1)]))
        #expect(parts == [["a": ""], ["a": "a"], ["a": "\0b"], ["a": "ab"]])
    }

    @Test("Data that a failed flush did not write is not written by the next successful one")
    func failedFlush() throws {
        let events = [
            made, .flushed(inode: Self.rootInode), write("lost"), .flushFailed(inode: 2), write("+", at: 4), .flushed(inode: 2),
        ]
        #expect(try model(events).image(.nothing).contents == ["a": "\0\0\0\0+"])
        #expect(try model(events).image(.everything).contents == ["a": "lost+"])
        // Written again and flushed, it is durable.
        #expect(try model(events + [write("kept"), .flushed(inode: 2)]).image(.nothing).contents == ["a": "kept+"])
    }

    @Test("A reused inode number refers to the new file")
    func inodeUsedAgain() throws {
        let events: [DiskEvent] = [
            made, write("old"), .linked(from: "/r/a", to: "/r/b"), .removed(path: "/r/a"),
            .fileMade(path: "/r/c", inode: 2), write("new"), .flushed(inode: 2), .flushed(inode: Self.rootInode),
        ]
        #expect(try model(events).image(.nothing).contents == ["b": "", "c": "new"])
    }

    /// The distinct images of many random draws.
    private func images(_ model: DiskModel) -> Set<[String: String]> {
        Set((0..<400).map { model.image(.some(SeededGenerator(seed: $0))).contents })
    }
}

@Suite("Allowed states after a power cut")
struct PowerCutExpectationTests {
    private static let item = WorkloadItem(valet: .everyday, key: "key")
    private static let plan = WorkloadPlan(operations: [
        .set(item, to: "first"), .set(item, to: "second"), .remove(item), .setPasscode("12345"), .set(item, to: "third"),
        .migrate(from: .everyday, to: .former, removingOriginals: true),
    ])

    private func complaints(after marks: [String], _ found: [ExaminedKeychain]) throws -> [Bool] {
        var expectation = PowerCutExpectation(Self.plan)
        for mark in marks { try expectation.apply(mark: mark) }
        return found.map { expectation.complaint(about: $0) != nil }
    }

    private func world(_ items: [String: String], passcode: String? = nil) -> ExaminedKeychain {
        .world(KeychainContents(items: items, passcode: passcode))
    }

    @Test("Before the first acknowledgement there is no keychain, an empty one, or one with the value")
    func creation() throws {
        let found = [
            .absent, world([:]), world(["everyday/key": "first"]), world(["everyday/key": "firs"]),
            world(["everyday/key": "first", "everyday/more": "x"]), .unusable("why"),
        ]
        #expect(try complaints(after: ["begin 0"], found) == [false, false, false, true, true, true])
        #expect(try complaints(after: [], found) == [false, true, true, true, true, true])
        #expect(try complaints(after: ["begin 0", "acknowledged 0"], found) == [true, true, false, true, true, true])
    }

    @Test("A value that is being replaced is the old or the new one, and never absent")
    func overwriting() throws {
        let marks = ["begin 0", "acknowledged 0", "begin 1"]
        let found = [world(["everyday/key": "first"]), world(["everyday/key": "second"]), world([:]), .absent]
        #expect(try complaints(after: marks, found) == [false, false, true, true])
        #expect(try complaints(after: marks + ["acknowledged 1"], found) == [true, false, true, true])
        // After a failure with an unknown outcome, both states are allowed until a read determines one.
        #expect(try complaints(after: marks + ["failed 1 -36"], found) == [false, false, true, true])
        #expect(try complaints(after: marks + ["failed 1 -36", "begin 2", "acknowledged 2"], found) == [true, true, false, true])
    }

    @Test("A passcode is set or not, and a migration leaves every value in one place or both")
    func passcodeAndMigration() throws {
        let marks = (0..<3).flatMap { ["begin \($0)", "acknowledged \($0)"] } + ["begin 3"]
        let passcodes = [world([:]), world([:], passcode: "12345"), world([:], passcode: "x")]
        #expect(try complaints(after: marks, passcodes) == [false, false, true])
        let migrating = marks + ["acknowledged 3", "begin 4", "acknowledged 4", "begin 5"]
        let found = [
            world(["everyday/key": "third"], passcode: "12345"),
            world(["everyday/key": "third", "former/key": "third"], passcode: "12345"),
            world(["former/key": "third"], passcode: "12345"), world([:], passcode: "12345"), world(["former/key": "third"]),
        ]
        #expect(try complaints(after: migrating, found) == [false, false, false, true, true])
    }
}
