// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import KeychainTesting
import Testing

@Suite("Moving a keychain to another protector")
struct ProtectorMoveTests {
    @Test("From key file to each other one and back, every item stays, and the old key file is gone", arguments: [false, true])
    func roundTrip(withPasscode: Bool) throws {
        for kind in [DeviceProtectorKind.systemdCredential, .tpm2] {
            try ProtectedHome.with { home in
                let keychain = try home.keychain()
                let passcode = withPasscode ? "Druidia" : nil
                try keychain.addItem("before", "one", .alwaysThisDeviceOnly)
                if let passcode { try keychain.set(passcode) }
                try keychain.addItem("after", "two")

                _ = try keychain.protect(kind, passcode)
                #expect(try keychain.protectorKind == kind && home.keyFiles() == [])
                #expect(try keychain.secret(of: "before") == "one" && keychain.secret(of: "after") == "two")
                #expect(try home.keychain().secret(of: "before") == "one")

                _ = try keychain.protect(.keyFile, passcode)
                #expect(try keychain.protectorKind == .keyFile && home.keyFiles() == [".key"])
                let last = try home.keychain()
                if let passcode {
                    try home.forgetWhatIsHeld(last)
                    #expect(throws: KeychainFailure(.interactionNotAllowed, "")) { try last.secret(of: "after") }
                    try last.unlock(with: passcode)
                }
                #expect(try last.secret(of: "before") == "one" && last.secret(of: "after") == "two")
                #expect(try last.verify(purgingQuarantine: false).isSound)
            }
        }
    }

    @Test("The lock stays as it was: unlocked, locked, and for how long")
    func lockStays() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("ck", "one", .afterFirstUnlock)
            try keychain.set("Druidia", autoLock: .after(seconds: 77))
            _ = try keychain.protect(.systemdCredential, "Druidia")
            #expect(try keychain.sessionStatus().state == .unlocked && keychain.sessionStatus().autoLock == .after(seconds: 77))
            try keychain.lock(.whenUnlocked)
            _ = try keychain.protect(.keyFile, "Druidia")
            #expect(try keychain.sessionStatus().state == .locked && keychain.secret(of: "ck") == "one")
            try keychain.lock(.everything)
            _ = try keychain.protect(.tpm2, "Druidia")
            #expect(try keychain.sessionStatus().state == .neverUnlocked)
            try keychain.unlock(with: "Druidia")
            #expect(try keychain.secret(of: "ck") == "one")
        }
    }

    @Test("Without the passcode, or with a wrong one, nothing changes")
    func passcodeNeeded() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.set("Druidia")
            let generation = try keychain.report().store?.keybagGeneration
            for passcode in [nil, "Spaceball"] {
                #expect(throws: KeychainFailure(.authFailed, "")) { _ = try keychain.protect(.systemdCredential, passcode) }
            }
            #expect(try keychain.report().store?.keybagGeneration == generation && home.keyFiles() == [".key"])
        }
    }

    @Test("To the protector that it has is refused, and to a credential or chip that is absent too; nothing changes")
    func refused() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("there", "one")
            #expect(throws: KeychainFailure(.duplicateItem, "")) { _ = try keychain.protect(.keyFile) }
            try FileManager.default.removeItem(atPath: home.credential)
            #expect(throws: KeychainFailure(.notAvailable, "")) { _ = try keychain.protect(.systemdCredential) }
            home.chip.setReachable(false)
            #expect(throws: KeychainFailure(.notAvailable, "")) { _ = try keychain.protect(.tpm2) }
            #expect(try home.keychain().secret(of: "there") == "one" && home.keyFiles() == [".key"])
        }
    }

    @Test("Where there is no keychain yet none is made")
    func nothingThere() throws {
        try ProtectedHome.with { home in
            #expect(throws: KeychainFailure(.notAvailable, "")) { _ = try home.keychain().protect(.tpm2) }
            #expect(!FileManager.default.fileExists(atPath: home.path + "/keychain.db"))
        }
    }

    @Test("Another program with the keychain open goes on reading and writing")
    func otherProgram() throws {
        try ProtectedHome.with { home in
            let (one, other) = (try home.keychain(), try home.keychain())
            try one.addItem("first", "one")
            #expect(try other.secret(of: "first") == "one")
            for kind in [DeviceProtectorKind.systemdCredential, .tpm2, .keyFile] {
                _ = try one.protect(kind)
                #expect(try other.secret(of: "first") == "one")
                try other.addItem("by the other, \(kind.name)", "two")
                #expect(try one.secret(of: "by the other, \(kind.name)") == "two" && other.protectorKind == kind)
            }
        }
    }

    @Test("What a move has left behind opens nothing, is reported, and goes with the same command")
    func leftover() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("there", "one")
            let path = try #require(try keychain.report().store?.protectorLocation)
            let contents = try Data(contentsOf: URL(filePath: path))
            _ = try keychain.protect(.systemdCredential)
            for name in [path, path + ".new"] {
                #expect(FileManager.default.createFile(atPath: name, contents: contents, attributes: [.posixPermissions: 0o600]))
            }
            #expect(try keychain.report().store?.leftoverKeyFile == path && home.keychain().secret(of: "there") == "one")
            _ = try keychain.protect(.systemdCredential)
            #expect(try home.keyFiles() == [] && keychain.report().store?.leftoverKeyFile == nil)
        }
    }

    @Test("A leftover key file does not stand in the way of coming back")
    func leftoverAndBack() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain()
            try keychain.addItem("there", "one")
            let path = try #require(try keychain.report().store?.protectorLocation)
            let contents = try Data(contentsOf: URL(filePath: path))
            _ = try keychain.protect(.tpm2)
            for name in [path, path + ".new"] {
                #expect(FileManager.default.createFile(atPath: name, contents: contents, attributes: [.posixPermissions: 0o600]))
            }
            _ = try keychain.protect(.keyFile)
            #expect(try home.keyFiles() == [".key"] && home.keychain().secret(of: "there") == "one")
            #expect(try Data(contentsOf: URL(filePath: path)) != contents)
        }
    }

    @Test("A move whose last step is missing is finished by whoever opens the keychain")
    func finishedByOpening() throws {
        try ProtectedHome.with { home in
            let keychain = try home.keychain(newWith: .systemdCredential)
            try keychain.addItem("there", "one")
            _ = try keychain.protect(.keyFile)
            let path = try #require(try keychain.report().store?.protectorLocation)
            try FileManager.default.moveItem(atPath: path, toPath: path + ".new")
            #expect(try home.keychain().secret(of: "there") == "one" && home.keyFiles() == [".key"])
        }
    }
}
