// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("Entitlements of the calling program")
struct CallerEntitlementsTests {
    /// A folder in which every source can be put in place.
    struct Sources {
        let directory: String
        var environment: [String: String] = [:]
        var executablePath: String { directory + "/druidia" }
        var flatpakPath: String { directory + "/.flatpak-info" }

        func write(_ identifier: String, to name: String) throws -> String {
            let path = directory + "/" + name
            try EntitlementsFileTests.write(["application-identifier": identifier], to: path)
            return path
        }

        func resolve() throws -> Entitlements {
            var caller = CallerEntitlements(environment: environment, executablePath: executablePath)
            caller.flatpakInformationPath = flatpakPath
            // Where a test makes no file of the program.
            caller.programOwner = caller.programOwner ?? geteuid()
            return try caller.resolve()
        }
    }

    @Test("The sources in order: the file in the environment, the file beside the program, the sandbox, the program's name")
    func order() throws {
        try withTemporaryDirectory { directory in
            var sources = Sources(directory: directory)
            #expect(try sources.resolve().applicationIdentifier == "druidia")

            sources.environment["SNAP_INSTANCE_NAME"] = "snap.druidia"
            #expect(try sources.resolve().applicationIdentifier == "snap.druidia")

            _ = try sources.write("beside.druidia", to: "druidia.entitlements")
            #expect(try sources.resolve().applicationIdentifier == "beside.druidia")

            sources.environment["KEYCHAIN_ENTITLEMENTS"] = try sources.write("named.druidia", to: "anywhere.plist")
            #expect(try sources.resolve().applicationIdentifier == "named.druidia")
            #expect(try sources.resolve().origin == directory + "/anywhere.plist")

            sources.environment["KEYCHAIN_ENTITLEMENTS"] = ""
            #expect(try sources.resolve().applicationIdentifier == "beside.druidia")
        }
    }

    @Test("Flatpak's application id comes before Snap's")
    func flatpak() throws {
        try withTemporaryDirectory { directory in
            var sources = Sources(directory: directory)
            sources.environment["SNAP_INSTANCE_NAME"] = "snap.druidia"
            try Data("[Instance]\nname=no\n\n[Application]\n runtime=r\nname=org.druidia.Shield\n[Context]\nname=neither\n".utf8)
                .write(to: URL(filePath: sources.flatpakPath))
            #expect(try sources.resolve().applicationIdentifier == "org.druidia.Shield")
        }
    }

    @Test("Snap's instance name comes before its name")
    func snap() throws {
        try withTemporaryDirectory { directory throws in
            var sources = Sources(directory: directory, environment: ["SNAP_NAME": "druidia"])
            #expect(try sources.resolve().applicationIdentifier == "druidia")
            sources.environment["SNAP_INSTANCE_NAME"] = "druidia_second"
            #expect(try sources.resolve().applicationIdentifier == "druidia_second")
        }
    }

    @Test("A program whose file was replaced while it runs keeps its name and its entitlements")
    func deletedExecutable() throws {
        try withTemporaryDirectory { directory in
            let sources = Sources(directory: directory)
            var caller = CallerEntitlements(environment: [:], executablePath: sources.executablePath + " (deleted)")
            caller.programOwner = geteuid()
            #expect(try caller.resolve().applicationIdentifier == "druidia")
            _ = try sources.write("beside.druidia", to: "druidia.entitlements")
            #expect(try caller.resolve().applicationIdentifier == "beside.druidia")
        }
    }

    @Test(
        "A source that is present and cannot be read is an error and not the next source",
        arguments: [".flatpak-info", "druidia.entitlements"])
    func unreadableSource(name: String) throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/" + name
            // A link that leads nowhere and a directory cannot be read, also by root.
            try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: directory + "/absent")
            #expect(throws: KeychainFailure(.missingEntitlement, "")) { try Sources(directory: directory).resolve() }
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            #expect(throws: KeychainFailure(.missingEntitlement, "")) { try Sources(directory: directory).resolve() }
        }
    }

    @Test(
        "A file beside the program is believed only if it belongs to the program's owner or root", .requiresRoot,
        arguments: [
            (program: 0, file: 0, isBelieved: true), (0, 61_301, false), (61_301, 61_301, true), (61_301, 0, true), (61_301, 61_302, false),
        ] as [(program: UInt32, file: UInt32, isBelieved: Bool)])
    func ownerOfFileBeside(program: UInt32, file: UInt32, isBelieved: Bool) throws {
        try withTemporaryDirectory { directory in
            let sources = Sources(directory: directory)
            try Data().write(to: URL(filePath: sources.executablePath))
            let path = try sources.write("beside.druidia", to: "druidia.entitlements")
            // The paths are copied for the calls.
            try #require(unsafe chown(sources.executablePath, program, 0) == 0 && chown(path, file, 0) == 0)
            guard !isBelieved else {
                #expect(try sources.resolve().applicationIdentifier == "beside.druidia")
                return
            }
            let failure = #expect(throws: KeychainFailure.self) { try sources.resolve() }
            #expect(failure?.status == .missingEntitlement && failure?.path == path)
        }
    }

    @Test("A link of another user to a file of root is not believed", .requiresRoot)
    func linkOfAnotherUser() throws {
        try withTemporaryDirectory { directory in
            let sources = Sources(directory: directory)
            try Data().write(to: URL(filePath: sources.executablePath))
            let file = try sources.write("of root", to: "file")
            let link = directory + "/druidia.entitlements"
            // The paths are copied for the calls.
            try #require(unsafe symlink(file, link) == 0)
            #expect(try sources.resolve().applicationIdentifier == "of root")
            try #require(unsafe lchown(link, 61_301, 0) == 0)
            #expect(throws: KeychainFailure(.missingEntitlement, "")) { try sources.resolve() }
        }
    }

    @Test("A file beside the program that everyone can change is not believed")
    func worldWritableFile() throws {
        try withTemporaryDirectory { directory in
            let sources = Sources(directory: directory)
            let path = try sources.write("beside.druidia", to: "druidia.entitlements")
            // The path is copied for the call.
            try #require(unsafe chmod(path, 0o666) == 0)
            #expect(throws: KeychainFailure(.missingEntitlement, "")) { try sources.resolve() }
        }
    }

    @Test("A missing file that the environment names is an error; the next source is not used")
    func missingNamedFile() throws {
        try withTemporaryDirectory { directory in
            var sources = Sources(directory: directory)
            _ = try sources.write("beside.druidia", to: "druidia.entitlements")
            sources.environment["KEYCHAIN_ENTITLEMENTS"] = directory + "/absent.plist"
            let failure = #expect(throws: KeychainFailure.self) { try sources.resolve() }
            #expect(failure?.status == .missingEntitlement)
            #expect(failure?.path == directory + "/absent.plist" && failure?.subject == .entitlements)
        }
    }

    @Test("An invalid file beside the program is an error; the next source is not used")
    func damagedFileBeside() throws {
        try withTemporaryDirectory { directory in
            let sources = Sources(directory: directory)
            try Data("{".utf8).write(to: URL(filePath: directory + "/druidia.entitlements"))
            #expect(throws: KeychainFailure(.missingEntitlement, "")) { try sources.resolve() }
        }
    }

    @Test("The default contains the path of the file in which groups can be listed")
    func originOfDefault() throws {
        try withTemporaryDirectory { directory in
            let origin = try Sources(directory: directory).resolve().origin
            #expect(origin.contains(directory + "/druidia.entitlements"))
            #expect(origin.contains("KEYCHAIN_ENTITLEMENTS"))
        }
    }
}

@Suite("An entitlements file")
struct EntitlementsFileTests {
    static func write(_ entitlements: [String: any Sendable], to path: String) throws {
        let data = try PropertyListSerialization.data(fromPropertyList: entitlements, format: .xml, options: 0)
        try data.write(to: URL(filePath: path))
    }

    private func read(_ entitlements: [String: any Sendable]) throws -> Entitlements {
        try withTemporaryDirectory { directory in
            let path = directory + "/test.entitlements"
            try Self.write(entitlements, to: path)
            return try EntitlementsFile.entitlements(atPath: path, defaultIdentifier: "program")
        }
    }

    @Test("Groups are in Apple's order, and the first is the default")
    func order() throws {
        let entitlements = try read([
            "application-identifier": "T.app",
            "keychain-access-groups": ["T.shared", "T.other"],
            "com.apple.developer.associated-application-identifier": ["T.associated"],
            "com.apple.security.application-groups": ["group.druidia"],
        ])
        #expect(entitlements.applicationIdentifier == "T.app")
        #expect(entitlements.accessGroups == ["T.shared", "T.other", "T.associated", "T.app", "group.druidia"])
        #expect(entitlements.defaultGroup == "T.shared")
    }

    @Test("The macOS key of the application identifier is accepted; the other key takes precedence")
    func macIdentifier() throws {
        #expect(try read(["com.apple.application-identifier": "T.mac"]).applicationIdentifier == "T.mac")
        let both = try read(["com.apple.application-identifier": "T.mac", "application-identifier": "T.other"])
        #expect(both.applicationIdentifier == "T.other")
    }

    @Test("Without an application identifier, the program's name is used")
    func defaultIdentifier() throws {
        let entitlements = try read(["keychain-access-groups": ["T.shared"]])
        #expect(entitlements.applicationIdentifier == "program")
        #expect(entitlements.accessGroups == ["T.shared", "program"])
    }

    @Test("A single string is a list of one element")
    func singleString() throws {
        #expect(try read(["keychain-access-groups": "T.shared"]).accessGroups == ["T.shared", "program"])
    }

    @Test("Duplicate and empty groups are ignored")
    func repeatedGroups() throws {
        #expect(try read(["keychain-access-groups": ["T.shared", "", "T.shared", "program"]]).accessGroups == ["T.shared", "program"])
    }

    @Test("An app clip is recognized", arguments: [true, false])
    func appClip(_ isClip: Bool) throws {
        #expect(try read(["com.apple.developer.on-demand-install-capable": isClip]).isAppClip == isClip)
    }

    @Test(
        "A value of the wrong type is an error with the file and the entry",
        arguments: [
            "application-identifier", "com.apple.application-identifier", "keychain-access-groups",
            "com.apple.developer.associated-application-identifier", "com.apple.security.application-groups",
        ])
    func wrongType(_ entry: String) {
        let failure = #expect(throws: KeychainFailure.self) { try read([entry: 7]) }
        #expect(failure?.status == .missingEntitlement)
        #expect(failure?.cause == .invalidEntry(entry))
        #expect(failure?.path?.hasSuffix("test.entitlements") == true && failure?.subject == .entitlements)
    }

    @Test("A list that contains a value other than a string is an error")
    func mixedList() {
        let mixed: [any Sendable] = ["T.shared", 7]
        #expect(throws: KeychainFailure(.missingEntitlement, "")) { try read(["keychain-access-groups": mixed]) }
    }

    @Test(
        "A file that is not a property list of a dictionary is an error with its path",
        arguments: [Data(), Data([0xff, 0xfe, 0x00]), Data(count: (1 << 20) + 1)]
            + ["{", "\n", "/* <plist> */", "<!-- <plist> -->", "a = b;", "{ a = b; }", "<plist><array/></plist>", "<plist/>"].map {
                Data($0.utf8)
            })
    func notADictionary(_ content: Data) throws {
        try expectRefused(content)
    }

    /// Expects an error about the file.
    private func expectRefused(_ content: Data) throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/test.entitlements"
            try content.write(to: URL(filePath: path))
            let failure = #expect(throws: KeychainFailure.self) {
                try EntitlementsFile.entitlements(atPath: path, defaultIdentifier: "program")
            }
            #expect(failure?.status == .missingEntitlement)
            #expect(failure?.path == path && failure?.subject == .entitlements && failure?.cause == .malformed)
        }
    }

    @Test("A binary property list is rejected without decoding it, because a damaged one could crash or hang the program")
    func binary() throws {
        let whole = try PropertyListSerialization.data(
            fromPropertyList: ["keychain-access-groups": ["T.shared"]], format: .binary, options: 0)
        for content in [whole, whole.dropLast(40), Data("bplist".utf8)] { try expectRefused(content) }
    }

    @Test(
        "Deep nesting is refused, and does not end the program",
        arguments: ["<array>", "<dict><key>a</key>", "<plist>", "(", "{a="], [false, true])
    func nesting(opening: String, isUTF16: Bool) throws {
        let start = opening.hasPrefix("<") ? "<?xml version=\"1.0\" encoding=\"\(isUTF16 ? "UTF-16" : "UTF-8")\"?><plist>" : ""
        let text = start + String(repeating: opening, count: 40_000)
        try expectRefused(try #require(text.data(using: isUTF16 ? .utf16 : .utf8)))
    }

    @Test("A file in an encoding other than UTF-8 is refused")
    func encoding() throws {
        let text = "<plist><dict><key>application-identifier</key><string>T.app</string></dict></plist>"
        for encoding in [String.Encoding.utf16, .utf16LittleEndian, .utf32] {
            try expectRefused(try #require(text.data(using: encoding)))
        }
    }

    @Test("A byte order mark, a declaration, a document type, and comments are accepted")
    func prolog() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/test.entitlements"
            let text = """
                \u{FEFF}<?xml version="1.0" encoding="UTF-8"?>
                <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
                <!-- The groups of Druidia -->
                <plist version="1.0"><dict><key>application-identifier</key><string>T.Dr&#252;idia</string></dict></plist>
                """
            try Data(text.utf8).write(to: URL(filePath: path))
            #expect(try EntitlementsFile.entitlements(atPath: path, defaultIdentifier: "p").applicationIdentifier == "T.Dr\u{FC}idia")
        }
    }

    @Test("A pipe in place of the file is an error, and does not block")
    func pipe() throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/test.entitlements"
            // The path is copied by the call.
            #expect(unsafe mkfifo(path, 0o600) == 0)
            #expect(throws: KeychainFailure(.missingEntitlement, "")) {
                try EntitlementsFile.entitlements(atPath: path, defaultIdentifier: "program")
            }
        }
    }
}
