// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("What the calling program is entitled to")
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
            return try caller.resolve()
        }
    }

    @Test("Sources are asked in their order: the named file, the file beside the program, the sandbox, the program's name")
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

    @Test("A program whose file was replaced while it runs keeps its name")
    func deletedExecutable() throws {
        let caller = CallerEntitlements(environment: [:], executablePath: "/opt/druidia (deleted)")
        #expect(try caller.resolve().applicationIdentifier == "druidia")
    }

    @Test("A named file that is not there is an error and not the next source")
    func missingNamedFile() throws {
        try withTemporaryDirectory { directory in
            var sources = Sources(directory: directory)
            _ = try sources.write("beside.druidia", to: "druidia.entitlements")
            sources.environment["KEYCHAIN_ENTITLEMENTS"] = directory + "/absent.plist"
            let failure = #expect(throws: KeychainFailure.self) { try sources.resolve() }
            #expect(failure?.status == .missingEntitlement)
            #expect(failure?.reason.contains(directory + "/absent.plist") == true)
        }
    }

    @Test("A file beside the program that cannot be understood is an error and not the next source")
    func damagedFileBeside() throws {
        try withTemporaryDirectory { directory in
            let sources = Sources(directory: directory)
            try Data("{".utf8).write(to: URL(filePath: directory + "/druidia.entitlements"))
            #expect(throws: KeychainFailure(.missingEntitlement, "")) { try sources.resolve() }
        }
    }

    @Test("The default names the file in which groups can be listed")
    func originOfDefault() throws {
        try withTemporaryDirectory { directory in
            let origin = try Sources(directory: directory).resolve().origin
            #expect(origin.contains(directory + "/druidia.entitlements"))
            #expect(origin.contains("KEYCHAIN_ENTITLEMENTS"))
        }
    }
}
