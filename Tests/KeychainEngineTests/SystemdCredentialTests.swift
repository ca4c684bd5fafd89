// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import Testing

@Suite("The systemd credential")
struct SystemdCredentialTests {
    private let storeID = StoreID(high: 1, low: 2)

    private func withCredential(_ content: Data?, _ body: (SystemdCredential, _ path: String) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            let path = directory + "/keychain-device-secret"
            if let content {
                try content.write(to: URL(filePath: path))
                // What systemd makes of it.
                try FileManager.default.setAttributes([.posixPermissions: 0o440], ofItemAtPath: path)
            }
            try body(SystemdCredential(credentialsDirectory: directory), path)
        }
    }

    @Test("Thirty-two bytes are the device secret, as they are")
    func reads() throws {
        let content = Data((0..<32).map { UInt8($0) })
        try withCredential(content) { credential, path in
            #expect(try credential.isPresent())
            #expect(credential.location(for: storeID) == path)
            let secret = try credential.deviceSecret(for: storeID)
            #expect(unsafe secret.withBytes { unsafe Data($0) } == content)
        }
    }

    @Test("Any other length is refused", arguments: [0, 1, 31, 33, 64])
    func wrongLength(_ byteCount: Int) throws {
        try withCredential(Data(repeating: 0x5a, count: byteCount)) { credential, path in
            let failure = #expect(throws: KeychainFailure.self) { _ = try credential.deviceSecret(for: storeID) }
            #expect(failure?.status == .notAvailable)
            #expect(failure?.reason.contains(path) == true)
        }
    }

    @Test("One that is not there is named")
    func missing() throws {
        try withCredential(nil) { credential, path throws in
            #expect(try credential.isPresent() == false)
            let failure = #expect(throws: KeychainFailure.self) { _ = try credential.deviceSecret(for: storeID) }
            #expect(failure?.status == .notAvailable)
            #expect(failure?.reason.contains(path) == true)
        }
    }

    @Test("One that cannot be looked for is not taken for none", arguments: ["loop", "file"])
    func cannotLook(_ name: String) throws {
        try withTemporaryDirectory { directory in
            try FileManager.default.createSymbolicLink(atPath: directory + "/loop", withDestinationPath: "loop")
            try Data().write(to: URL(filePath: directory + "/file"))
            let credential = SystemdCredential(credentialsDirectory: directory + "/" + name)
            let failure = #expect(throws: KeychainFailure.self) { try credential.isPresent() }
            #expect(failure?.status == .notAvailable)
            #expect(failure?.reason.contains(directory) == true)
        }
    }

    @Test("A process that was given no credentials is told so")
    func noDirectory() throws {
        let credential = SystemdCredential(credentialsDirectory: nil)
        #expect(try credential.isPresent() == false)
        let failure = #expect(throws: KeychainFailure.self) { _ = try credential.deviceSecret(for: storeID) }
        #expect(failure?.status == .notAvailable)
        #expect(failure?.reason.contains("keychain-device-secret") == true)
    }
}
