// SPDX-License-Identifier: Apache-2.0

import Foundation
import Locksmith
import Testing

@Suite("Archives that somebody made to end, stop or fill a program")
struct HostileArchiveTests {
    private func expectRefused(_ bytes: Data, _ comment: Comment? = nil) {
        let error = #expect(throws: LocksmithError.decode, comment) { try Locksmith.data(inValue: bytes) }
        #expect(error?.status == nil, comment)
    }

    private func value(_ bytes: Data) throws -> Any? { try Locksmith.data(inValue: bytes)["key"] }

    @Test("What the tests make is read where it is honest")
    func honest() throws {
        var archive = RawArchive()
        let text = archive.text("12345")
        #expect(try value(archive.data(value: archive.array([text, text]))) as? [String] == ["12345", "12345"])
    }

    @Test("Lists in lists, each known before the one around it", arguments: [(3, true), (20, false), (3_000, false)])
    func deepLists(depth: Int, isRead: Bool) throws {
        var archive = RawArchive()
        var all = [archive.list.array([])]
        for _ in 0..<depth { all.append(archive.list.array([all[all.count - 1]])) }
        let extra = archive.list.array(all)
        let bytes = archive.data(value: archive.text("12345"), beside: extra)
        if isRead { #expect(try value(bytes) as? String == "12345") } else { expectRefused(bytes) }
    }

    @Test("Arrays in arrays, each known before the one around it", arguments: [(90, true), (150, false), (3_000, false)])
    func deepArrays(depth: Int, isRead: Bool) throws {
        var archive = RawArchive()
        let arrayClass = archive.classNamed("NSArray")
        var all = [archive.text("core")]
        for _ in 0..<depth {
            all.append(archive.container(arrayClass, [("NS.objects", archive.references([all[all.count - 1]]))]))
        }
        let bytes = archive.data(value: archive.array(all))
        if isRead { #expect((try value(bytes) as? [Any])?.count == depth + 1) } else { expectRefused(bytes) }
    }

    @Test("A URL whose base has a base, and so on")
    func deepURLs() {
        var archive = RawArchive()
        let urlClass = archive.classNamed("NSURL")
        let text = archive.list.identifier(archive.text("a"))
        var all = [archive.text("core")]
        var base = archive.list.identifier(0)
        for _ in 0..<150 {
            all.append(archive.container(urlClass, [("NS.base", base), ("NS.relative", text)]))
            base = archive.list.identifier(all[all.count - 1])
        }
        expectRefused(archive.data(value: archive.array(all)))
    }

    @Test("Many arrays with one list of elements")
    func sharedList() {
        var archive = RawArchive()
        let arrayClass = archive.classNamed("NSArray")
        let shared = archive.references(Array(repeating: archive.text("element"), count: 400))
        let arrays = (0..<400).map { _ in archive.container(arrayClass, [("NS.objects", shared)]) }
        expectRefused(archive.data(value: archive.array(arrays)))
    }

    @Test("Many lists in the same bytes", arguments: [(2, true), (400, false)])
    func overlappingLists(count: Int, isRead: Bool) throws {
        var archive = RawArchive()
        let element = archive.list.text("element")
        let first = archive.list.array(Array(repeating: element, count: 400))
        let lists = (0..<count).map { _ in archive.list.alias(of: first) }
        let extra = archive.list.array(lists)
        let bytes = archive.data(value: archive.text("12345"), beside: extra)
        if isRead { #expect(try value(bytes) as? String == "12345") } else { expectRefused(bytes) }
    }

    @Test("Many numbers of one hash", arguments: [(1_000, true), (1_001, false)])
    func equalHashes(count: Int, isRead: Bool) throws {
        var archive = RawArchive()
        let numbers = (1...count).map { archive.add(archive.list.real(Double($0) * 0x1p64)) }
        let set = archive.container(archive.classNamed("NSSet"), [("NS.objects", archive.references(numbers))])
        let bytes = archive.data(value: set)
        if isRead { #expect((try value(bytes) as? Set<AnyHashable>)?.count == count) } else { expectRefused(bytes) }
    }

    @Test("A container as a key, and keys without values")
    func wrongKeys() {
        var archive = RawArchive()
        expectRefused(archive.data(value: archive.dictionary([archive.array([archive.text("a")])], [archive.text("b")])))
        archive = RawArchive()
        expectRefused(archive.data(value: archive.dictionary([archive.text("a"), archive.text("b")], [archive.text("c")])))
        archive = RawArchive()
        expectRefused(archive.data(value: archive.dictionary([archive.text("a")], [archive.text("b"), archive.text("c")])))
    }

    @Test("An archive of another archiver, or without what stands for no object")
    func otherArchives() {
        var archive = RawArchive()
        archive.archiver = "NSOtherArchiver"
        expectRefused(archive.data(value: archive.text("a")))
        archive = RawArchive(null: "null")
        expectRefused(archive.data(value: archive.text("a")))
    }

    @Test("An array that holds itself many times over is not written either")
    func endlessWriting() {
        var value: Any = "core"
        for _ in 0..<60 { value = [value, value] }
        let error = #expect(throws: LocksmithError.unarchivable) { try Locksmith.saveData(["deep": value], forUserAccount: "Skroob") }
        #expect(error?.key?.hasPrefix("deep") == true)
    }
}
