// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainServices
import KeychainTestingTraits
import Locksmith
import Testing

/// Sets one attribute, checks its stored key and type, reads it, searches by it, and updates it.
struct AttributeCheck<Subject, Result> {
    let password: Subject
    let asPassword: (Subject) -> any Password
    let read: (Subject) throws -> Result?

    // `tellsApart`: whether the attribute is part of the primary key. `stored`: the stored value, with the attribute's type.
    func callAsFunction<Value: Equatable>(
        _ key: CFString, _ first: Value, _ second: Value, tellsApart: Bool = false, set: (inout Subject, Value) -> Void,
        get: (Result) -> Value?, stored: (Any?) -> Value? = { $0 as? Value }, unasked: (inout Subject, String) -> Void
    ) throws {
        var password = password
        set(&password, first)
        var other = password
        set(&other, second)
        let itemClass = asPassword(password).asDeleteableSecureStoragePropertyDictionary[kSecClass as String] as? String ?? ""

        try asPassword(password).createInSecureStore()
        #expect(stored(try RawItems.only(itemClass: itemClass)[key as String]) == first)
        #expect(try read(password).flatMap(get) == first)
        #expect(try read(other) == nil, "Nothing has the other value")
        // Read with another value, which the request omits, so the result has the stored value.
        var unawares = other
        unasked(&unawares, key as String)
        #expect(try read(unawares).flatMap(get) == first)

        try asPassword(other).updateInSecureStore()
        let values = try RawItems.all(itemClass: itemClass).map { stored($0[key as String]) }
        #expect(values == (tellsApart ? [first, second] : [second]))
        #expect(try read(other).flatMap(get) == second)
        #expect(try read(password).flatMap(get) == (tellsApart ? first : nil))

        if !tellsApart { #expect(throws: LocksmithError.notFound) { try asPassword(password).deleteFromSecureStore() } }
        try asPassword(other).deleteFromSecureStore()
        #expect(try RawItems.all(itemClass: itemClass).count == (tellsApart ? 1 : 0))
        if tellsApart { try asPassword(password).deleteFromSecureStore() }
    }
}

extension AttributeCheck where Subject: Password {
    init(_ password: Subject, read: @escaping (Subject) throws -> Result?) {
        self.init(password: password, asPassword: { $0 }, read: read)
    }

    func callAsFunction<Value: Equatable>(
        _ key: CFString, _ first: Value, _ second: Value, tellsApart: Bool = false, set: (inout Subject, Value) -> Void,
        get: (Result) -> Value?, stored: (Any?) -> Value? = { $0 as? Value }
    ) throws {
        try self(key, first, second, tellsApart: tellsApart, set: set, get: get, stored: stored, unasked: { $0.unasked = $1 })
    }
}

private let groups = ["first", "second"]

@Suite("Attributes of both kinds of passwords", .inMemoryKeychain(accessGroups: groups))
struct AttributeTests {
    private func check<Value: Equatable>(
        _ key: CFString, _ first: Value, _ second: Value, tellsApart: Bool = false, set: (inout any Password, Value) -> Void,
        get: (PasswordResult) -> Value?, stored: (Any?) -> Value? = { $0 as? Value }
    ) throws {
        for password in [GenericPassword(), InternetPassword()] as [any Password] {
            let check = AttributeCheck(password: password, asPassword: { $0 }, read: { try $0.readPassword() })
            try check(
                key, first, second, tellsApart: tellsApart, set: set, get: get, stored: stored, unasked: { $0.unasked = $1 })
        }
    }

    @Test func account() throws {
        try check(kSecAttrAccount, "a", "b", tellsApart: true, set: { $0.account = $1 }, get: { $0.account })
    }

    @Test func accessible() throws {
        for (first, second) in [
            (LocksmithAccessibleOption.afterFirstUnlock, LocksmithAccessibleOption.whenUnlockedThisDeviceOnly), (.always, .whenUnlocked),
        ] {
            try check(
                kSecAttrAccessible, first, second, set: { $0.accessible = $1 }, get: { $0.accessible },
                stored: { ($0 as? String).flatMap(LocksmithAccessibleOption.init) })
        }
    }

    @Test func accessGroup() throws {
        try check(
            kSecAttrAccessGroup, groups[0], groups[1], tellsApart: true, set: { $0.accessGroup = $1 }, get: { $0.accessGroup })
    }

    @Test func comment() throws {
        try check(kSecAttrComment, "a", "b", set: { $0.comment = $1 }, get: { $0.comment })
    }

    @Test func creator() throws {
        try check(kSecAttrCreator, 1, 0xffff_ffff, set: { $0.creator = $1 }, get: { $0.creator })
    }

    @Test func description() throws {
        try check(kSecAttrDescription, "a", "b", set: { $0.description = $1 }, get: { $0.description })
    }

    @Test func isInvisible() throws {
        try check(kSecAttrIsInvisible, true, false, set: { $0.isInvisible = $1 }, get: { $0.isInvisible })
    }

    @Test func isNegative() throws {
        try check(kSecAttrIsNegative, true, false, set: { $0.isNegative = $1 }, get: { $0.isNegative })
    }

    @Test func type() throws {
        try check(kSecAttrType, 1, 2, set: { $0.type = $1 }, get: { $0.type })
    }

    @Test("A missing attribute is nil, and an update does not change it")
    func notGiven() throws {
        try GenericPassword(comment: "kept").createInSecureStore()
        try GenericPassword(secret: "54321").updateInSecureStore()
        let result = try GenericPassword().tryReadFromSecureStore()
        #expect(result?.comment == "kept")
        #expect(result?.label == nil)
        #expect(result?.data?["secret"] as? String == "54321")
    }

    @Test("An update without an access group applies to all of the program's groups")
    func bothGroups() throws {
        for group in groups { try GenericPassword(accessGroup: group).createInSecureStore() }
        try GenericPassword(secret: "54321").updateInSecureStore()
        for group in groups {
            #expect(try GenericPassword(accessGroup: group).tryReadFromSecureStore()?.data?["secret"] as? String == "54321")
        }
    }

    @Test("A number that is not valid for an attribute is an error")
    func largeNumber() {
        #expect(throws: LocksmithError.param) { try GenericPassword(creator: .max).createInSecureStore() }
    }

    @Test("An access group that the entitlements do not list is an error")
    func foreignGroup() throws {
        let error = #expect(throws: LocksmithError.undefined) { try GenericPassword(accessGroup: "third").createInSecureStore() }
        #expect(error?.status == errSecMissingEntitlement)
    }
}

@Suite("Attributes of generic passwords only", .inMemoryKeychain)
struct GenericAttributeTests {
    private let check = AttributeCheck(GenericPassword()) { password in
        try password.tryReadFromSecureStore() as GenericPasswordSecureStorableResultType?
    }

    @Test func service() throws {
        try check(kSecAttrService, "a", "b", tellsApart: true, set: { $0.service = $1 }, get: { $0.service })
    }

    @Test func generic() throws {
        try check(kSecAttrGeneric, Data([1, 0]), Data([2]), set: { $0.generic = $1 }, get: { $0.generic })
    }

    @Test func label() throws {
        try check(kSecAttrLabel, "a", "b", set: { $0.label = $1 }, get: { $0.label })
    }
}

@Suite("Attributes of internet passwords only", .inMemoryKeychain)
struct InternetAttributeTests {
    private let check = AttributeCheck(InternetPassword()) { password in
        try password.tryReadFromSecureStore() as InternetPasswordSecureStorableResultType?
    }

    @Test func authenticationType() throws {
        try check(
            kSecAttrAuthenticationType, .httpDigest, .default, tellsApart: true, set: { $0.authenticationType = $1 },
            get: { $0.authenticationType }, stored: { ($0 as? String).flatMap(LocksmithInternetAuthenticationType.init) })
    }

    @Test func internetProtocol() throws {
        try check(
            kSecAttrProtocol, .imaps, .ssh, tellsApart: true, set: { $0.internetProtocol = $1 }, get: { $0.internetProtocol },
            stored: { ($0 as? String).flatMap(LocksmithInternetProtocol.init) })
    }

    @Test func port() throws {
        try check(kSecAttrPort, 80, 0, tellsApart: true, set: { $0.port = $1 }, get: { $0.port })
    }

    @Test func server() throws {
        try check(kSecAttrServer, "a", "b", tellsApart: true, set: { $0.server = $1 }, get: { $0.server })
    }

    @Test func path() throws {
        try check(kSecAttrPath, "/a", "/b", tellsApart: true, set: { $0.path = $1 }, get: { $0.path })
    }

    @Test func securityDomain() throws {
        try check(kSecAttrSecurityDomain, "a", "b", tellsApart: true, set: { $0.securityDomain = $1 }, get: { $0.securityDomain })
    }

    @Test("An update without a path does not change an item with one")
    func updateWithoutPath() throws {
        try InternetPassword(path: "/a").createInSecureStore()
        try InternetPassword(secret: "54321").updateInSecureStore()
        try InternetPassword(secret: "6789").updateInSecureStore()
        #expect(try RawItems.all(itemClass: kSecClassInternetPassword as String).count == 2)
        #expect(try InternetPassword(path: "/a").tryReadFromSecureStore()?.data?["secret"] as? String == "12345")
    }

    @Test("Without a path or a domain, an item that has none is read and deleted before one that has another")
    func exactFirst() throws {
        try InternetPassword(secret: "other path", path: "/a").createInSecureStore()
        try InternetPassword(secret: "other domain", securityDomain: "a").createInSecureStore()
        try InternetPassword(secret: "mine").updateInSecureStore()
        #expect(try InternetPassword().tryReadFromSecureStore()?.data?["secret"] as? String == "mine")
        #expect(try RawItems.all(itemClass: kSecClassInternetPassword as String).count == 3)
        try InternetPassword().deleteFromSecureStore()
        #expect(try RawItems.all(itemClass: kSecClassInternetPassword as String).count == 2)
        #expect(try InternetPassword(path: "/a").tryReadFromSecureStore()?.data?["secret"] as? String == "other path")
        #expect(try InternetPassword(securityDomain: "a").tryReadFromSecureStore()?.data?["secret"] as? String == "other domain")
    }

    @Test("Without a path, a read finds an item with any path, and a deletion deletes all of them")
    func anyPath() throws {
        try InternetPassword(path: "/a").createInSecureStore()
        #expect(try InternetPassword().tryReadFromSecureStore()?.path == "/a")
        try InternetPassword(path: "/b").createInSecureStore()
        try InternetPassword().deleteFromSecureStore()
        #expect(try RawItems.all(itemClass: kSecClassInternetPassword as String).isEmpty)
    }
}

@Suite("Enumerations")
struct EnumerationTests {
    @Test("Every accessibility has the value of the keychain")
    func accessible() {
        #expect(LocksmithAccessibleOption.allCases.map(\.rawValue) == ["ck", "cku", "dk", "dku", "akpu", "ak", "aku"])
        #expect(LocksmithAccessibleOption.whenUnlocked.rawValue == kSecAttrAccessibleWhenUnlocked as String)
    }

    @Test("Every authentication type has the value of the keychain")
    func authenticationType() {
        #expect(
            LocksmithInternetAuthenticationType.allCases.map(\.rawValue) == [
                "dflt", "dpaa", "form", "http", "httd", "msna", "ntlm", "rpaa",
            ])
    }

    @Test("Every protocol has the value of the keychain")
    func internetProtocol() {
        #expect(
            LocksmithInternetProtocol.allCases.map(\.rawValue) == [
                "afp ", "atlk", "daap", "eppc", "ftp ", "ftpa", "ftpx", "ftps", "http", "htpx", "htps", "htsx", "imap", "imps", "ipp ",
                "irc ", "ircs", "ldap", "ldps", "nntp", "ntps", "pop3", "pops", "rtsp", "rtsx", "smb ", "smtp", "sox ", "ssh ", "teln",
                "tels",
            ])
    }

    @Test("Every class has the value of the keychain")
    func securityClass() {
        #expect(LocksmithSecurityClass.allCases.map(\.rawValue) == ["genp", "inet", "cert", "keys", "idnt"])
    }

    @Test("A raw value creates its case, and any other value returns nil")
    func inverse() {
        #expect(LocksmithAccessibleOption.allCases.allSatisfy { LocksmithAccessibleOption(rawValue: $0.rawValue) == $0 })
        #expect(LocksmithInternetProtocol.allCases.allSatisfy { LocksmithInternetProtocol(rawValue: $0.rawValue) == $0 })
        #expect(
            LocksmithInternetAuthenticationType.allCases.allSatisfy { LocksmithInternetAuthenticationType(rawValue: $0.rawValue) == $0 })
        #expect(LocksmithSecurityClass.allCases.allSatisfy { LocksmithSecurityClass(rawValue: $0.rawValue) == $0 })
        #expect(LocksmithAccessibleOption(rawValue: "WhenUnlocked") == nil)
        #expect(LocksmithInternetProtocol(rawValue: "https") == nil)
    }

    @Test("The spellings of Swift 2 are the same cases")
    func aliases() {
        let accessible: [LocksmithAccessibleOption] = [
            .AfterFirstUnlock, .AfterFirstUnlockThisDeviceOnly, .Always, .AlwaysThisDeviceOnly, .WhenPasscodeSetThisDeviceOnly,
            .WhenUnlocked, .WhenUnlockedThisDeviceOnly,
        ]
        #expect(accessible == LocksmithAccessibleOption.allCases)
        let types: [LocksmithInternetAuthenticationType] = [.Default, .DPA, .HTMLForm, .HTTPBasic, .HTTPDigest, .MSN, .NTLM, .RPA]
        #expect(types == LocksmithInternetAuthenticationType.allCases)
        let protocols: [LocksmithInternetProtocol] = [
            .AFP, .AppleTalk, .DAAP, .EPPC, .FTP, .FTPAccount, .FTPProxy, .FTPS, .HTTP, .HTTPProxy, .HTTPS, .HTTPSProxy, .IMAP, .IMAPS,
            .IPP, .IRC, .IRCS, .LDAP, .LDAPS, .NNTP, .NNTPS, .POP3, .POP3S, .RTSP, .RTSPProxy, .SMB, .SMTP, .SOCKS, .SSH, .Telnet, .TelnetS,
        ]
        #expect(protocols == LocksmithInternetProtocol.allCases)
        let classes: [LocksmithSecurityClass] = [.GenericPassword, .InternetPassword, .Certificate, .Key, .Identity]
        #expect(classes == LocksmithSecurityClass.allCases)
        let errors: [LocksmithError] = [
            .Allocate, .AuthFailed, .Decode, .Duplicate, .InteractionNotAllowed, .NoError, .NotAvailable, .NotFound, .Param, .RequestNotSet,
            .TypeNotFound, .UnableToClear, .Undefined, .Unimplemented,
        ]
        #expect(errors + [.unarchivable] == LocksmithError.allCases)
    }
}
