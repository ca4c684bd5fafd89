// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainTestSupport
import Locksmith
import Testing

/// A binary property list built object by object, so that it can be invalid.
struct RawPropertyList {
    private var objects: [[UInt8]] = []
    /// The index of the bytes of each object number.
    private var numbers: [Int] = []

    private static func bigEndian(_ number: Int, byteCount: Int) -> [UInt8] {
        (0..<byteCount).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    private static func header(_ kind: UInt8, _ count: Int) -> [UInt8] { [kind << 4 | 0xf, 0x12] + bigEndian(count, byteCount: 4) }

    mutating func add(_ bytes: [UInt8]) -> Int {
        objects.append(bytes)
        numbers.append(objects.count - 1)
        return numbers.count - 1
    }

    /// A second number for the same bytes.
    mutating func alias(of number: Int) -> Int {
        numbers.append(numbers[number])
        return numbers.count - 1
    }

    mutating func text(_ text: String) -> Int { add(Self.header(5, text.utf8.count) + text.utf8) }

    mutating func real(_ number: Double) -> Int { add([0x23] + Self.bigEndian(Int(bitPattern: UInt(number.bitPattern)), byteCount: 8)) }

    /// The number of an object of a keyed archive.
    mutating func identifier(_ number: Int) -> Int { add([0x83] + Self.bigEndian(number, byteCount: 4)) }

    mutating func array(_ elements: [Int]) -> Int {
        add(Self.header(0xa, elements.count) + elements.flatMap { Self.bigEndian($0, byteCount: 4) })
    }

    mutating func dictionary(_ entries: [(String, Int)]) -> Int {
        let keys = entries.map { text($0.0) }
        return add(Self.header(0xd, entries.count) + (keys + entries.map(\.1)).flatMap { Self.bigEndian($0, byteCount: 4) })
    }

    func data(top: Int) -> Data {
        var bytes = Array("bplist00".utf8)
        var offsets: [Int] = []
        for object in objects {
            offsets.append(bytes.count)
            bytes += object
        }
        let table = bytes.count
        bytes += numbers.flatMap { Self.bigEndian(offsets[$0], byteCount: 4) } + [0, 0, 0, 0, 0, 0, 4, 4]
        for number in [numbers.count, top, table] { bytes += Self.bigEndian(number, byteCount: 8) }
        return Data(bytes)
    }
}

/// A keyed archive built object by object.
struct RawArchive {
    var list = RawPropertyList()
    private var objects: [Int] = []
    var archiver = "NSKeyedArchiver"

    init(null: String = "$null") {
        _ = add(list.text(null))
    }

    /// Adds a value of the property list, and returns its object number.
    mutating func add(_ value: Int) -> Int {
        objects.append(value)
        return objects.count - 1
    }

    mutating func text(_ text: String) -> Int { add(list.text(text)) }

    mutating func classNamed(_ name: String) -> Int { add(list.dictionary([("$classname", list.text(name))])) }

    /// The object numbers of a container's elements, as a value of the property list.
    mutating func references(_ numbers: [Int]) -> Int { list.array(numbers.map { list.identifier($0) }) }

    mutating func container(_ classNumber: Int, _ fields: [(String, Int)]) -> Int {
        add(list.dictionary([("$class", list.identifier(classNumber))] + fields))
    }

    mutating func array(_ elements: [Int]) -> Int { container(classNamed("NSArray"), [("NS.objects", references(elements))]) }

    mutating func dictionary(_ keys: [Int], _ values: [Int]) -> Int {
        container(classNamed("NSDictionary"), [("NS.keys", references(keys)), ("NS.objects", references(values))])
    }

    /// The archive of a dictionary that holds `value` under "key".
    mutating func data(value: Int, beside extra: Int? = nil) -> Data { data(root: dictionary([text("key")], [value]), beside: extra) }

    /// `extra`: a value of the property list that is read with it and that the archive does not use.
    mutating func data(root: Int, beside extra: Int? = nil) -> Data {
        let objects = list.array(objects)
        let entries = [
            ("$archiver", list.text(archiver)), ("$top", list.dictionary([("root", list.identifier(root))])), ("$objects", objects),
        ]
        let top = list.dictionary(entries + (extra.map { [("extra", $0)] } ?? []))
        return list.data(top: top)
    }
}

@Suite("Damaged and hostile archives")
struct DamagedArchiveTests {
    private static let whole = Data(base64Encoded: ArchiveTests.foreignArchive, options: .ignoreUnknownCharacters) ?? Data()

    /// Reads arbitrary bytes: the result must be a dictionary or the error `decode`.
    private func read(_ bytes: Data) -> Bool {
        do {
            _ = try Locksmith.data(inValue: bytes)
            return true
        } catch LocksmithError.decode {
            return false
        } catch {
            Issue.record("Another error: \(error)")
            return false
        }
    }

    @Test("Every truncated archive is rejected")
    func cut() {
        for count in 0..<Self.whole.count { #expect(!read(Self.whole.prefix(count))) }
        #expect(read(Self.whole))
    }

    @Test("A changed byte only changes the result or causes an error")
    func changedBytes() {
        var refusals = 0
        let values: [UInt8] = [0x00, 0x01, 0x0f, 0x7f, 0x80, 0xd0, 0xff]
        for position in Self.whole.indices {
            for byte in Scale.pick([values[position % values.count]], full: values) {
                var bytes = Self.whole
                bytes[position] = byte
                if !read(bytes) { refusals += 1 }
            }
        }
        #expect(refusals > 0)
    }

    /// Forty levels of sets, each of which holds both of the level below: hashing the outermost one would take 2^40 steps.
    private static let nestedSets = """
        YnBsaXN0MDDUAAEAAgADAAQABQAGARIBFVkkYXJjaGl2ZXJYJG9iamVjdHNUJHRvcFgkdmVyc2lvbl8QD05TS2V5ZWRBcmNoaXZlcq8QWAAHAAgADgARABIA
        GAAaAB4AIAAkACYAKgAsADAAMgA2ADgAPAA+AEIARABIAEoATgBQAFQAVgBaAFwAYABiAGYAaABsAG4AcgB0AHgAegB+AIAAhACGAIoAjACQAJIAlgCYAJwA
        ngCiAKQAqACqAK4AsAC0ALYAugC8AMAAwgDGAMgAzADOANIA1ADYANoA3gDgAOQA5gDqAOwA8ADyAPYA+AD8AP4BAgEEAQgBCgELVSRudWxs0gAJAAoACwAM
        WCRjbGFzc2VzWiRjbGFzc25hbWWiAAwADVVOU1NldFhOU09iamVjdNIACQAKAA8AEKIAEAANXE5TRGljdGlvbmFyeVF40gATABQAFQAWViRjbGFzc1pOUy5v
        YmplY3RzgAGhABeAA9IAEwAUABUAGaEAF9IAEwAUABUAG6IAHAAdgASABdIAEwAUABUAH6MAHAAdABfSABMAFAAVACGiACIAI4AGgAfSABMAFAAVACWjACIA
        IwAX0gATABQAFQAnogAoACmACIAJ0gATABQAFQArowAoACkAF9IAEwAUABUALaIALgAvgAqAC9IAEwAUABUAMaMALgAvABfSABMAFAAVADOiADQANYAMgA3S
        ABMAFAAVADejADQANQAX0gATABQAFQA5ogA6ADuADoAP0gATABQAFQA9owA6ADsAF9IAEwAUABUAP6IAQABBgBCAEdIAEwAUABUAQ6MAQABBABfSABMAFAAV
        AEWiAEYAR4ASgBPSABMAFAAVAEmjAEYARwAX0gATABQAFQBLogBMAE2AFIAV0gATABQAFQBPowBMAE0AF9IAEwAUABUAUaIAUgBTgBaAF9IAEwAUABUAVaMA
        UgBTABfSABMAFAAVAFeiAFgAWYAYgBnSABMAFAAVAFujAFgAWQAX0gATABQAFQBdogBeAF+AGoAb0gATABQAFQBhowBeAF8AF9IAEwAUABUAY6IAZABlgByA
        HdIAEwAUABUAZ6MAZABlABfSABMAFAAVAGmiAGoAa4AegB/SABMAFAAVAG2jAGoAawAX0gATABQAFQBvogBwAHGAIIAh0gATABQAFQBzowBwAHEAF9IAEwAU
        ABUAdaIAdgB3gCKAI9IAEwAUABUAeaMAdgB3ABfSABMAFAAVAHuiAHwAfYAkgCXSABMAFAAVAH+jAHwAfQAX0gATABQAFQCBogCCAIOAJoAn0gATABQAFQCF
        owCCAIMAF9IAEwAUABUAh6IAiACJgCiAKdIAEwAUABUAi6MAiACJABfSABMAFAAVAI2iAI4Aj4AqgCvSABMAFAAVAJGjAI4AjwAX0gATABQAFQCTogCUAJWA
        LIAt0gATABQAFQCXowCUAJUAF9IAEwAUABUAmaIAmgCbgC6AL9IAEwAUABUAnaMAmgCbABfSABMAFAAVAJ+iAKAAoYAwgDHSABMAFAAVAKOjAKAAoQAX0gAT
        ABQAFQClogCmAKeAMoAz0gATABQAFQCpowCmAKcAF9IAEwAUABUAq6IArACtgDSANdIAEwAUABUAr6MArACtABfSABMAFAAVALGiALIAs4A2gDfSABMAFAAV
        ALWjALIAswAX0gATABQAFQC3ogC4ALmAOIA50gATABQAFQC7owC4ALkAF9IAEwAUABUAvaIAvgC/gDqAO9IAEwAUABUAwaMAvgC/ABfSABMAFAAVAMOiAMQA
        xYA8gD3SABMAFAAVAMejAMQAxQAX0gATABQAFQDJogDKAMuAPoA/0gATABQAFQDNowDKAMsAF9IAEwAUABUAz6IA0ADRgECAQdIAEwAUABUA06MA0ADRABfS
        ABMAFAAVANWiANYA14BCgEPSABMAFAAVANmjANYA1wAX0gATABQAFQDbogDcAN2ARIBF0gATABQAFQDfowDcAN0AF9IAEwAUABUA4aIA4gDjgEaAR9IAEwAU
        ABUA5aMA4gDjABfSABMAFAAVAOeiAOgA6YBIgEnSABMAFAAVAOujAOgA6QAX0gATABQAFQDtogDuAO+ASoBL0gATABQAFQDxowDuAO8AF9IAEwAUABUA86IA
        9AD1gEyATdIAEwAUABUA96MA9AD1ABfSABMAFAAVAPmiAPoA+4BOgE/SABMAFAAVAP2jAPoA+wAX0gATABQAFQD/ogEAAQGAUIBR0gATABQAFQEDowEAAQEA
        F9IAEwAUABUBBaIBBgEHgFKAU9IAEwAUABUBCaMBBgEHABdRa9MAEwEMABQBDQEOARBXTlMua2V5c4ACoQEPgFahARGAVNEBEwEUVHJvb3SAVxIAAYagAAgA
        GQAjACwAMQA6AEwA/wEFAQ4BFwEiAScBLQE2AT8BRAFRAVMBXAFjAW4BcAFzAXUBfgGBAYoBjwGRAZMBnAGjAawBsQGzAbUBvgHFAc4B0wHVAdcB4AHnAfAB
        9QH3AfkCAgIJAhICFwIZAhsCJAIrAjQCOQI7Aj0CRgJNAlYCWwJdAl8CaAJvAngCfQJ/AoECigKRApoCnwKhAqMCrAKzArwCwQLDAsUCzgLVAt4C4wLlAucC
        8AL3AwADBQMHAwkDEgMZAyIDJwMpAysDNAM7A0QDSQNLA00DVgNdA2YDawNtA28DeAN/A4gDjQOPA5EDmgOhA6oDrwOxA7MDvAPDA8wD0QPTA9UD3gPlA+4D
        8wP1A/cEAAQHBBAEFQQXBBkEIgQpBDIENwQ5BDsERARLBFQEWQRbBF0EZgRtBHYEewR9BH8EiASPBJgEnQSfBKEEqgSxBLoEvwTBBMMEzATTBNwE4QTjBOUE
        7gT1BP4FAwUFBQcFEAUXBSAFJQUnBSkFMgU5BUIFRwVJBUsFVAVbBWQFaQVrBW0FdgV9BYYFiwWNBY8FmAWfBagFrQWvBbEFugXBBcoFzwXRBdMF3AXjBewF
        8QXzBfUF/gYFBg4GEwYVBhcGIAYnBjAGNQY3BjkGQgZJBlIGVwZZBlsGZAZrBnQGeQZ7Bn0GhgaNBpYGmwadBp8GqAavBrgGvQa/BsEGygbRBtMG4AboBuoG
        7QbvBvIG9Ab5Bv4HAAAAAAAAAAICAAAAAAAAARYAAAAAAAAAAAAAAAAAAAcF
        """

    @Test("Sets of sets are rejected before they are hashed")
    func setsOfSets() throws {
        let bytes = try #require(Data(base64Encoded: Self.nestedSets, options: .ignoreUnknownCharacters))
        #expect(!read(bytes))
    }

    @Test("Random damage", arguments: 0..<8)
    func random(seed: UInt64) {
        var generator = SplitMix(state: seed)
        var refusals = 0
        for _ in 0..<1_000 {
            var bytes = Self.whole
            for _ in 0..<Int.random(in: 1...8, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            if !read(bytes) { refusals += 1 }
        }
        // Some change only a character or a number.
        #expect((1..<1_000).contains(refusals))
    }

    @Test("Invalid offsets in the trailer are rejected")
    func trailer() {
        for field in [8, 16, 24] {
            for number: [UInt8] in [
                Array(repeating: 0xff, count: 8), [0x7f] + Array(repeating: 0xff, count: 7), [0, 0, 0, 0, 0, 0, 0xff, 0xff],
            ] {
                var bytes = Self.whole
                let start = bytes.count - 32 + field
                bytes.replaceSubrange(start..<(start + 8), with: number)
                #expect(!read(bytes))
            }
        }
    }

    /// A keyed archive that Foundation writes as XML, in which object references have another form.
    @Test("Other forms of property lists are rejected")
    func otherForms() throws {
        let dictionary = ["password": "12345"]
        for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
            #expect(!read(try PropertyListSerialization.data(fromPropertyList: dictionary, format: format, options: 0)))
        }
        #expect(!read(Data("{\"password\": \"12345\"}".utf8)))
    }

    @Test("A class that is not permitted is rejected")
    func foreignClass() throws {
        let name = Data("NSUUID".utf8)
        let range = try #require(Self.whole.firstRange(of: name))
        var bytes = Self.whole
        bytes.replaceSubrange(range, with: Data("NSTask".utf8))
        #expect(!read(bytes))
    }

    @Test("An object that contains itself is rejected", arguments: [1, 2])
    func cycle(start: Int) {
        // 1 is the dictionary itself, 2 its key.
        var archive = RawArchive()
        let root = archive.add(
            archive.list.dictionary([
                ("$class", archive.list.identifier(3)), ("NS.keys", archive.references([2])), ("NS.objects", archive.references([start])),
            ]))
        _ = archive.text("key")
        _ = archive.classNamed("NSDictionary")
        #expect(read(archive.data(root: root)) == (start != 1))
    }

    private struct SplitMix: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9e37_79b9_7f4a_7c15
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
            return mixed ^ (mixed >> 31)
        }
    }
}

@Suite("Archives designed to crash a program, block it, or exhaust its memory")
struct HostileArchiveTests {
    private func expectRefused(_ bytes: Data, _ comment: Comment? = nil) {
        let error = #expect(throws: LocksmithError.decode, comment) { try Locksmith.data(inValue: bytes) }
        #expect(error?.status == nil, comment)
    }

    private func value(_ bytes: Data) throws -> Any? { try Locksmith.data(inValue: bytes)["key"] }

    @Test("Valid archives made by the test's generator are read")
    func valid() throws {
        var archive = RawArchive()
        let text = archive.text("12345")
        #expect(try value(archive.data(value: archive.array([text, text]))) as? [String] == ["12345", "12345"])
    }

    @Test("Nested lists, each defined before the one that contains it", arguments: [(3, true), (20, false), (3_000, false)])
    func deepLists(depth: Int, isRead: Bool) throws {
        var archive = RawArchive()
        var all = [archive.list.array([])]
        for _ in 0..<depth { all.append(archive.list.array([all[all.count - 1]])) }
        let extra = archive.list.array(all)
        let bytes = archive.data(value: archive.text("12345"), beside: extra)
        if isRead { #expect(try value(bytes) as? String == "12345") } else { expectRefused(bytes) }
    }

    @Test("Nested arrays, each defined before the one that contains it", arguments: [(90, true), (150, false), (3_000, false)])
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

    @Test("A URL with a long chain of bases")
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

    @Test("Many arrays that share one list of elements")
    func sharedList() {
        var archive = RawArchive()
        let arrayClass = archive.classNamed("NSArray")
        let shared = archive.references(Array(repeating: archive.text("element"), count: 400))
        let arrays = (0..<400).map { _ in archive.container(arrayClass, [("NS.objects", shared)]) }
        expectRefused(archive.data(value: archive.array(arrays)))
    }

    @Test("Many lists that share the same bytes", arguments: [(2, true), (400, false)])
    func overlappingLists(count: Int, isRead: Bool) throws {
        var archive = RawArchive()
        let element = archive.list.text("element")
        let first = archive.list.array(Array(repeating: element, count: 400))
        let lists = (0..<count).map { _ in archive.list.alias(of: first) }
        let extra = archive.list.array(lists)
        let bytes = archive.data(value: archive.text("12345"), beside: extra)
        if isRead { #expect(try value(bytes) as? String == "12345") } else { expectRefused(bytes) }
    }

    @Test("Many numbers with equal hashes", arguments: [(1_000, true), (1_001, false)])
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

    @Test("An archive of another archiver, or without the null object")
    func otherArchives() {
        var archive = RawArchive()
        archive.archiver = "NSOtherArchiver"
        expectRefused(archive.data(value: archive.text("a")))
        archive = RawArchive(null: "null")
        expectRefused(archive.data(value: archive.text("a")))
    }

    @Test("An array that contains itself many times cannot be archived")
    func endlessWriting() {
        var value: Any = "core"
        for _ in 0..<60 { value = [value, value] }
        let error = #expect(throws: LocksmithError.unarchivable) { try Locksmith.saveData(["deep": value], forUserAccount: "Skroob") }
        #expect(error?.key?.hasPrefix("deep") == true)
    }
}
