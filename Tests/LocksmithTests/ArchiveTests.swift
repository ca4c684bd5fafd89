// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeychainTestingTraits
import Locksmith
import Testing

@Suite("Data in an item", .inMemoryKeychain)
struct ArchiveTests {
    /// An archive in the form that Locksmith 4.0 writes on Apple platforms, made with another program than this library: Python's
    /// `plistlib`, in the layout of `NSKeyedArchiver`.
    static let foreignArchive = """
        YnBsaXN0MDDUAQIDBAUGBwpYJHZlcnNpb25ZJGFyY2hpdmVyVCR0b3BYJG9iamVjdHMSAAGGoF8QD05TS2V5ZWRBcmNoaXZlctEICVRyb290gAGvEDQLDDU2
        Nz5CQ0RFRkdISUpLTE1OT1JWV1hZXWFiY2ZsbXB0dXh6e35/goaHiIuPlZaXmp6fVSRudWxs0w0ODxAiNFdOUy5rZXlzWk5TLm9iamVjdHNWJGNsYXNzrxAR
        ERITFBUWFxgZGhscHR4fICGAA4AGgAiACoAMgA6AEIASgBWAF4AagB6AIYAkgCmALoAyrxARIyQlJicoKSorLC0uLzAxMjOAAoAFgAeACYALgA2AD4ARgBSA
        FoAZgB2AIIAjgCiALYAxgDNbbXlfcGFzc3dvcmRYcGFzc3dvcmTSODk6O1okY2xhc3NuYW1lWCRjbGFzc2VzXxAPTlNNdXRhYmxlU3RyaW5nozo8PVhOU1N0
        cmluZ1hOU09iamVjdNI/D0BBWU5TLnN0cmluZ1R0ZXh0gARaY2hhbmdlYWJsZWcARgD8AN8AZQAg2D3dEVZhY2NlbnQQKlVjb3VudBP/////////+1huZWdh
        dGl2ZRQAAAAAAAAAAP//////////VWxhcmdlCVRmbGFnIz/4AAAAAAAAVXJhdGlv0jg5UFFWTlNEYXRlolA90lMPVFVXTlMudGltZSNBweGjACAAAIATVGRh
        dGVDAQIDVGRhdGHSODlaW11OU011dGFibGVEYXRho1pcPVZOU0RhdGHSXg9fYFdOUy5kYXRhQQSAGF5jaGFuZ2VhYmxlRGF0YV8QG2h0dHBzOi8vdHdpdHRl
        ci5leGFtcGxlL2FwadI4OWRlVU5TVVJMomQ902doD2lqa1dOUy5iYXNlW05TLnJlbGF0aXZlgACAG4AcU3VybNI4OW5vVk5TVVVJRKJuPdJxD3JzXE5TLnV1
        aWRieXRlc08QEAABAgMEBQYHCAkKCwwNDg+AH1R1dWlk0jg5dndWTlNOdWxsonY90Q95gCJUbm9uZdI4OXx9V05TQXJyYXmifD1RYdI4OYCBXk5TTXV0YWJs
        ZUFycmF5o4B8PdIOD4OFooQmgCaAJ1RsaXN0UWvSDg+JiqCAJdI4OYyNXxATTlNNdXRhYmxlRGljdGlvbmFyeaOMjj1cTlNEaWN0aW9uYXJ50w0OD5CSlKGR
        gCqhk4ArgCxWbmVzdGVkUXjSODmYmVVOU1NldKKYPdIOD5udoZyAL4AwU3NldNI4OY6goo49AAgAEQAaACQAKQAyADcASQBMAFEAUwCKAJAAlwCfAKoAsQDF
        AMcAyQDLAM0AzwDRANMA1QDXANkA2wDdAN8A4QDjAOUA5wD7AP0A/wEBAQMBBQEHAQkBCwENAQ8BEQETARUBFwEZARsBHQEfASsBNAE5AUQBTQFfAWMBbAF1
        AXoBhAGJAYsBlgGlAawBrgG0Ab0BxgHXAd0B3gHjAewB8gH3Af4CAQIGAg4CFwIZAh4CIgInAiwCOgI+AkUCSgJSAlQCVgJlAoMCiAKOApECmAKgAqwCrgKw
        ArICtgK7AsICxQLKAtcC6gLsAvEC9gL9AwADAwMFAwoDDwMXAxoDHAMhAzADNAM5AzwDPgNAA0UDRwNMA00DTwNUA2oDbgN7A4IDhAOGA4gDigOMA5MDlQOa
        A6ADowOoA6oDrAOuA7IDtwAAAAAAAAIBAAAAAAAAAKEAAAAAAAAAAAAAAAAAAAO6
        """

    private func store(_ data: [String: Any]) throws -> [String: Any] {
        try Locksmith.updateData(data, forUserAccount: "Skroob")
        return try #require(try Locksmith.tryLoadDataForUserAccount("Skroob"))
    }

    @Test("Each value is read with its type")
    func roundTrip() throws {
        let uuid = UUID()
        let read = try store([
            "text": "Füße 🔑", "empty": "", "yes": true, "no": false, "small": 1, "negative": -5, "least": Int.min, "large": UInt64.max,
            "byte": UInt8(200), "ratio": 1.5, "float": Float(0.5), "infinite": Double.infinity,
            "date": Date(timeIntervalSinceReferenceDate: -1.25),
            "data": Data([0, 1, 2]), "url": URL(string: "https://druidia.example/a?b=c#d") as Any, "uuid": uuid, "null": NSNull(),
            "another null": NSNull(),
            "optional": Optional("there") as Any, "object": NSNumber(value: 7), "": "an empty key",
        ])
        #expect(read.count == 21)
        #expect(read["text"] as? String == "Füße 🔑")
        #expect(read["empty"] as? String == "")
        #expect(read["yes"] as? Bool == true)
        #expect(read["no"] as? Bool == false)
        #expect(read["small"] as? Int == 1)
        #expect(read["negative"] as? Int == -5)
        #expect(read["least"] as? Int == Int.min)
        #expect(read["large"] as? UInt64 == UInt64.max)
        #expect(read["byte"] as? UInt8 == 200)
        #expect(read["ratio"] as? Double == 1.5)
        #expect(read["float"] as? Double == 0.5)
        #expect(read["infinite"] as? Double == Double.infinity)
        #expect(read["date"] as? Date == Date(timeIntervalSinceReferenceDate: -1.25))
        #expect(read["data"] as? Data == Data([0, 1, 2]))
        #expect(read["url"] as? URL == URL(string: "https://druidia.example/a?b=c#d"))
        #expect(read["uuid"] as? UUID == uuid)
        #expect(read["null"] is NSNull)
        // Foundation for Linux gives two instances different hashes.
        #expect(read["null"] as AnyObject === read["another null"] as AnyObject)
        #expect(read["optional"] as? String == "there")
        #expect(read["object"] as? Int == 7)
        #expect(read[""] as? String == "an empty key")
    }

    @Test("Arrays, sets and dictionaries are read with their contents")
    func containers() throws {
        let read = try store([
            "list": ["a", 1, Date(timeIntervalSinceReferenceDate: 0)] as [Any], "strings": ["x", "y"], "nothing": [String](),
            "nested": ["deep": ["deeper": [["k": Data([1])]]]], "set": Set(["p", "q"]), "numbers": [1: "one", 2: "two"],
            "objects": NSDictionary(dictionary: ["k": NSArray(array: [1, "z"])]),
        ])
        let list = try #require(read["list"] as? [Any])
        #expect(list[0] as? String == "a")
        #expect(list[1] as? Int == 1)
        #expect(list[2] as? Date == Date(timeIntervalSinceReferenceDate: 0))
        #expect(read["strings"] as? [String] == ["x", "y"])
        #expect((read["nothing"] as? [Any])?.isEmpty == true)
        let deep = (read["nested"] as? [String: Any])?["deep"] as? [String: Any]
        #expect((deep?["deeper"] as? [[String: Any]])?.first?["k"] as? Data == Data([1]))
        #expect(read["set"] as? Set<String> == ["p", "q"])
        #expect((read["numbers"] as? [AnyHashable: Any])?[AnyHashable(NSNumber(value: 2))] as? String == "two")
        #expect(((read["objects"] as? [String: Any])?["k"] as? [Any])?[1] as? String == "z")
    }

    @Test("A URL keeps its base")
    func relativeURL() throws {
        let url = try #require(URL(string: "b/c", relativeTo: URL(string: "https://druidia.example/a/")))
        let read = try #require(try store(["url": url])["url"] as? URL)
        #expect(read.absoluteString == "https://druidia.example/a/b/c")
        #expect(read.baseURL?.absoluteString == "https://druidia.example/a/")
    }

    @Test("Large data and many entries are read", arguments: [14, 15, 16, 255, 256, 70_000])
    func sizes(count: Int) throws {
        let text = String(repeating: "ü", count: count)
        let entries = Dictionary(uniqueKeysWithValues: (0..<min(count, 1_000)).map { ("key \($0)", $0) })
        let read = try store([
            "data": Data(repeating: 7, count: count), "text": text, "plain": String(repeating: "u", count: count), "entries": entries,
        ])
        #expect(read["data"] as? Data == Data(repeating: 7, count: count))
        #expect(read["text"] as? String == text)
        #expect((read["plain"] as? String)?.count == count)
        #expect((read["entries"] as? [String: Any])?["key 13"] as? Int == 13)
        #expect((read["entries"] as? [String: Any])?.count == entries.count)
    }

    @Test("Canonically equivalent texts keep their bytes")
    func canonicallyEqual() throws {
        let composed = "\u{e9}"
        let decomposed = "e\u{301}"
        let read = try store(["list": [composed, decomposed, composed]])
        let list = try #require(read["list"] as? [String])
        #expect(list.map { Array($0.utf8) } == [composed, decomposed, composed].map { Array($0.utf8) })
    }

    @Test("An archive in the form that Foundation writes on Apple platforms is read, with each of the classes that are allowed")
    func foreign() throws {
        let value = try #require(Data(base64Encoded: Self.foreignArchive, options: .ignoreUnknownCharacters))
        let read = try Locksmith.data(inValue: value)
        #expect(read["password"] as? String == "my_password")
        #expect(read["changeable"] as? String == "text")
        #expect(read["accent"] as? String == "Füße 🔑")
        #expect(read["count"] as? Int == 42)
        #expect(read["negative"] as? Int == -5)
        #expect(read["large"] as? UInt64 == UInt64.max)
        #expect(read["flag"] as? Bool == true)
        #expect(read["ratio"] as? Double == 1.5)
        #expect(read["date"] as? Date == Date(timeIntervalSinceReferenceDate: 600_000_000.25))
        #expect(read["data"] as? Data == Data([1, 2, 3]))
        #expect(read["changeableData"] as? Data == Data([4]))
        #expect(read["url"] as? URL == URL(string: "https://twitter.example/api"))
        #expect(read["uuid"] as? UUID == UUID(uuidString: "00010203-0405-0607-0809-0A0B0C0D0E0F"))
        #expect(read["none"] is NSNull)
        #expect((read["list"] as? [Any])?[1] as? Int == 42)
        #expect((read["nested"] as? [String: Any])?["k"] is [Any])
        #expect(read["set"] as? Set<String> == ["x"])
        #expect(read.count == 17)
    }

    @Test("Foundation reads what is written, and what Foundation writes is read")
    func foundation() throws {
        try Locksmith.saveData(
            ["text": "Skroob", "count": 42, "list": ["a"], "date": Date(timeIntervalSinceReferenceDate: 5)], forUserAccount: "Skroob")
        let value = try #require(try RawItems.only()["v_Data"] as? Data)
        let classes: [AnyClass] = [NSDictionary.self, NSArray.self, NSString.self, NSNumber.self, NSDate.self]
        let object = try NSKeyedUnarchiver.unarchivedObject(ofClasses: classes, from: value) as? [String: Any]
        #expect(object?["text"] as? String == "Skroob")
        #expect(object?["count"] as? Int == 42)
        #expect(object?["list"] as? [String] == ["a"])
        #expect(object?["date"] as? Date == Date(timeIntervalSinceReferenceDate: 5))

        let dictionary: NSDictionary = ["text": NSString(string: "Helmet"), "count": NSNumber(value: 7)]
        let read = try Locksmith.data(inValue: NSKeyedArchiver.archivedData(withRootObject: dictionary, requiringSecureCoding: true))
        #expect(read["text"] as? String == "Helmet")
        #expect(read["count"] as? Int == 7)
    }

    static let unarchivable: [(key: String, data: @Sendable () -> [String: Any])] = [
        ("photo", { ["name": "Skroob", "photo": NSObject()] }),
        ("profile.photo", { ["profile": ["name": "Skroob", "photo": NSObject()] as [String: Any]] }),
        ("profile.photos[1]", { ["profile": ["photos": ["a", NSObject()] as [Any]]] }),
        ("nothing", { ["nothing": Optional<String>.none as Any] }),
        ("structure", { ["structure": LocksmithErrorTests()] }),
        ("price", { ["price": NSDecimalNumber(string: "1.25")] }),
        ("b", { ["a": "fine", "b": NSObject(), "c": NSObject()] }),
        // Values that could be written but not read, or not read unchanged.
        ("lists", { ["lists": Set([[1, 2]])] }),
        ("byList", { ["byList": [[1]: "a"]] }),
        ("byDate", { ["byDate": [Date(timeIntervalSinceReferenceDate: .nan): 1]] }),
        ("mixed", { ["mixed": [AnyHashable(true): "t", AnyHashable(1): "one"]] }),
    ]

    @Test("A value that cannot be archived throws an error with its key, and nothing is stored", arguments: unarchivable)
    func errors(key: String, data: @Sendable () -> [String: Any]) throws {
        try Locksmith.saveData(["old": "value"], forUserAccount: "Helmet")
        for store in [Locksmith.saveData(_:forUserAccount:inService:), Locksmith.updateData(_:forUserAccount:inService:)] {
            for account in ["Skroob", "Helmet"] {
                let error = #expect(throws: LocksmithError.unarchivable) { try store(data(), account, LocksmithDefaultService) }
                #expect(error?.key == key)
                #expect(error?.description.contains(key) == true)
            }
        }
        #expect(try RawItems.all().count == 1)
        #expect(try Locksmith.tryLoadDataForUserAccount("Helmet")?["old"] as? String == "value")
    }

    @Test("More than a hundred levels of nesting are rejected, and fewer are accepted")
    func depth() throws {
        func nested(_ depth: Int) -> Any { (0..<depth).reduce("core" as Any) { inner, _ in [inner] } }
        var inner = try store(["deep": nested(98)])["deep"]
        for _ in 0..<98 { inner = (inner as? [Any])?.first }
        #expect(inner as? String == "core")
        #expect(throws: LocksmithError.unarchivable) { try store(["deep": nested(100)]) }
        // A URL has parts of its own, a level further down.
        let url = try #require(URL(string: "b", relativeTo: URL(string: "https://druidia.example/a/")))
        let wrapped = (0..<96).reduce(url as Any) { inner, _ in [inner] }
        #expect(try store(["deep": wrapped])["deep"] != nil)
        #expect(throws: LocksmithError.unarchivable) { try store(["deep": [wrapped]]) }
    }
}
