// SPDX-License-Identifier: Apache-2.0

import Foundation
import Locksmith
import Testing

@Suite("Damaged and hostile archives")
struct DamagedArchiveTests {
    private static let whole = Data(base64Encoded: ArchiveTests.foreignArchive, options: .ignoreUnknownCharacters) ?? Data()

    /// Reads bytes that may be anything: a dictionary or `decode`, and nothing else may happen.
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

    @Test("Every beginning of an archive is refused")
    func cut() {
        for count in 0..<Self.whole.count { #expect(!read(Self.whole.prefix(count))) }
        #expect(read(Self.whole))
    }

    @Test("No changed byte does more than change what is read, or have it refused")
    func changedBytes() {
        var refusals = 0
        for position in Self.whole.indices {
            for byte: UInt8 in [0x00, 0x01, 0x0f, 0x7f, 0x80, 0xd0, 0xff] {
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

    @Test("Sets of sets are refused before anything of them is hashed")
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

    @Test("Numbers at the end that lead anywhere are refused")
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

    /// A keyed archive as Foundation's property lists make it, with XML's form of object numbers, is no binary one.
    @Test("Other forms of property lists are refused")
    func otherForms() throws {
        let dictionary = ["password": "12345"]
        for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
            #expect(!read(try PropertyListSerialization.data(fromPropertyList: dictionary, format: format, options: 0)))
        }
        #expect(!read(Data("{\"password\": \"12345\"}".utf8)))
    }

    @Test("A class that is not on the list is refused")
    func foreignClass() throws {
        let name = Data("NSUUID".utf8)
        let range = try #require(Self.whole.firstRange(of: name))
        var bytes = Self.whole
        bytes.replaceSubrange(range, with: Data("NSTask".utf8))
        #expect(!read(bytes))
    }

    @Test("An object that contains itself is refused", arguments: [1, 2])
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
