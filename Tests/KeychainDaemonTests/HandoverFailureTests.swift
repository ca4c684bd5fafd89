// SPDX-License-Identifier: Apache-2.0
import Contracts
import Foundation
import KeychainCore
import KeychainEngine
import KeychainIPC
import KeychainStore
import KeychainSystem
import KeychainTestSupport
import Synchronization
import Testing

@testable import keychaind

extension Handover {
    fileprivate var storePath: String { home + "/keychain.db" }

    /// Copies the user's keychain to a directory, and returns that.
    fileprivate func copyOfHome() throws -> String {
        engine().close()
        let copy = service.directory.path + "/copy"
        try FileManager.default.copyItem(atPath: home, toPath: copy)
        return copy
    }

    /// Replaces the user's directory.
    fileprivate func restore(_ copy: String) throws {
        try FileManager.default.removeItem(atPath: home)
        try FileManager.default.copyItem(atPath: copy, toPath: home)
    }

    /// A program that root has registered.
    fileprivate func registeredProgram(_ path: String? = nil) -> UserKeychain {
        UserKeychain(engine(), connector: DaemonClient.connector(toSocketAt: path ?? service.path), group: .registered)
    }

    /// Hands the keychain of the user over.
    fileprivate func adopt(_ account: String = "a") throws {
        try engine().addItem(account, "1")
        #expect(try run("adopt") == .exited(0))
    }
}

@Suite("What other programs, interruptions, and restored files do to a keychain that keychaind keeps", .blocking)
struct HandoverFailureTests {
    @Test(
        "A keychain whose passwords cost more than keychaind spends on them is not adopted, and stays in its file",
        arguments: [true, false])
    func costlyPassword(isPasscode: Bool) throws {
        try Handover.with { handover in
            let costly = try LocalKeychain.withCheapPasscode(home: handover.home, policyMebibytes: 128)
            let attributes = ItemAttributes([.account: .string("a")])
            if isPasscode {
                try costly.set("swordfish")
            } else {
                let context = AuthenticationContext()
                context.setApplicationPassword(
                    // The bytes are copied within the closure.
                    ApplicationPassword(try unsafe SecretBytes(byteCount: 4) { unsafe $0.copyBytes(from: [1, 2, 3, 4]) }))
                _ = try costly.add(
                    AddRequest(
                        itemClass: .genericPassword, attributes: attributes, secret: Data([1]),
                        accessControl: AccessControl(.always, constraint: .applicationPassword),
                        authentication: Authentication(interaction: .forbidden, context: context)))
            }
            costly.close()
            try FileManager.default.removeItem(atPath: handover.home + "/policy.json")
            #expect(failure { _ = try handover.engine().handOver(to: handover.connector) }?.cause == .costRefused)
            #expect(waitUntil { !FileManager.default.fileExists(atPath: handover.kept) })
            if isPasscode {
                try handover.engine().changePasscode(
                    from: try Passcode(text: "swordfish"), to: try Passcode(text: "swordfish"), rotatingKeys: false, autoLock: .standard)
            } else {
                try handover.engine().delete(DeleteRequest(query: .account("a")))
            }
            #expect(failure { _ = try handover.engine().handOver(to: handover.connector) } == nil)
        }
    }

    // MARK: Registered programs

    @Test("A registered program uses keychaind, also if another program has put a keychain in the place of the signpost")
    func movedSignpost() throws {
        try Handover.with { handover in
            try handover.adopt()
            try FileManager.default.removeItem(atPath: handover.home)
            try FileManager.default.createDirectory(
                atPath: handover.home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            try handover.engine().addItem("trap", "1")
            let program = handover.registeredProgram()
            try program.set("secret", "2")
            #expect(try program.value(of: "a") == "1")
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try handover.engine().value(of: "secret") }
            // A program with a group that is not registered asks, too.
            let unregistered = UserKeychain(handover.engine(), connector: handover.connector, group: .unregistered)
            #expect(try unregistered.value(of: "a") == "1")
            #expect(try handover.registeredProgram().keptKeychain() != nil)
            // Without keychaind, and while the keychain is given back, it stores nothing, whether it begins or goes on.
            handover.service.process.send(signal: SIGKILL)
            _ = try handover.service.process.waitUntilEnded()
            for program in [program, handover.registeredProgram()] {
                #expect(throws: KeychainFailure(.notAvailable, "")) { try program.set("secret", "3") }
            }
            let stage = HandoverStage(directory: handover.kept)
            try stage.change(from: .inUse, to: .releasing)
            try handover.service.start()
            for program in [program, handover.registeredProgram()] {
                #expect(throws: KeychainFailure(.notAvailable, "")) { try program.set("secret", "3") }
            }
            #expect(throws: KeychainFailure(.itemNotFound, "")) { try handover.engine().value(of: "secret") }
        }
    }

    @Test("A registered program uses the file before an adoption, and notices the adoption and the release")
    func notAdopted() throws {
        try Handover.with { handover in
            let program = handover.registeredProgram()
            try program.set("a", "1")
            #expect(try handover.engine().value(of: "a") == "1")
            #expect(try handover.run("adopt") == .exited(0))
            try program.set("a", "2")
            #expect(try handover.takeBack().rowCount == 1)
            #expect(try program.value(of: "a") == "2")
            #expect(try handover.engine().value(of: "a") == "2")
        }
    }

    // MARK: Lost files

    @Test("Without the signpost programs are led to keychaind, and make no other keychain; it can be put back, or the keychain released")
    func lostSignpost() throws {
        try Handover.with { handover in
            try handover.adopt()
            try FileManager.default.removeItem(atPath: handover.storePath)
            let program = handover.program()
            #expect(try program.value(of: "a") == "1")
            try program.set("b", "2")
            let storeID = try #require(try handover.connection().keptKeychain().storeID)
            try handover.engine().finishHandover(of: storeID, to: handover.connector)
            #expect(Signpost.isPresent(at: handover.storePath))
            // Everything of the user is lost.
            for name in ["keychain.db", "keys"] { try FileManager.default.removeItem(atPath: "\(handover.home)/\(name)") }
            // Its programs may look for it in another place.
            #expect(throws: KeychainFailure(.notAvailable, "")) { try handover.takeBack() }
            #expect(try handover.takeBack(requiresSignpost: false).rowCount == 2)
            #expect(try handover.engine().value(of: "b") == "2")
            #expect(try !FileManager.default.contentsOfDirectory(atPath: handover.home + "/keys").contains { $0.hasSuffix(".kept") })
        }
    }

    @Test("A keychain in another directory is not affected by the mark of one that keychaind keeps")
    func markOfOtherPath() throws {
        try Handover.with { handover in
            try handover.adopt()
            var configuration = try handover.engine().configuration()
            configuration.storePath = handover.service.directory.path + "/other/keychain.db"
            let other = LocalKeychain(configuration: configuration, entitlements: Entitlements(applicationIdentifier: "app"))
            try other.addItem("a", "2")
            #expect(try other.value(of: "a") == "2")
        }
    }

    @Test("A release replaces a damaged signpost, and the files of a former store beside it")
    func damagedSignpost() throws {
        try Handover.with { handover in
            try handover.adopt()
            try Data("keychaind signpost 1\nx".utf8).write(to: URL(fileURLWithPath: handover.storePath))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: handover.storePath)
            for suffix in ["-wal", "-shm"] {
                _ = FileManager.default.createFile(
                    atPath: handover.storePath + suffix, contents: Data(repeating: 7, count: 4_152), attributes: [.posixPermissions: 0o600])
            }
            #expect(try handover.takeBack().rowCount == 1)
            #expect(try handover.program().value(of: "a") == "1")
            #expect(try handover.engine().verify(purgingQuarantine: false).findings.isEmpty)
        }
    }

    // MARK: Interruptions

    @Test("A release that fails leaves no copy with the user, and has to be repeated")
    func failedRelease() throws {
        try Handover.with { handover in
            try handover.adopt()
            let foreign = handover.home + "/.release-notes"
            _ = FileManager.default.createFile(atPath: foreign, contents: Data("mine".utf8))
            #expect(throws: KeychainFailure(.notAvailable, "")) {
                try handover.takeBack { if $0 == .rowsCopied { _ = try? handover.service.restart(with: SIGKILL) } }
            }
            #expect(try handover.takeBack().rowCount == 1)
            #expect(try handover.keyFileCount == 1)
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: handover.home).filter { $0.hasPrefix(".release") } == [".release-notes"]
            )
            #expect(try handover.program().value(of: "a") == "1")
        }
    }

    @Test("A release after an adoption that was interrupted before it placed the signpost leaves the file in charge")
    func releaseAfterInterruptedAdoption() throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            #expect(try handover.run("adopt", killedAt: .prepared) == .killed(bySignal: SIGKILL))
            try handover.engine().addItem("b", "2")
            #expect(try handover.takeBack().keptCopyPath != nil)
            #expect(try handover.program().items().count == 2)
            #expect(try handover.connection().keptKeychain().0 == .nothing)
        }
    }

    @Test("A copy that is not complete is removed when its connection ends, and when keychaind starts", arguments: [true, false])
    func incompleteCopy(isServiceKilled: Bool) throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            let keys = try handover.engine().keysForHandover()
            var connection: DaemonHandover? = try handover.connection()
            try connection?.beginAdoption(of: keys)
            #expect(FileManager.default.fileExists(atPath: handover.kept))
            if isServiceKilled {
                #expect(try handover.service.restart(with: SIGKILL) == .killed(bySignal: SIGKILL))
                #expect(waitUntil { !FileManager.default.fileExists(atPath: handover.kept) })
            }
            connection = nil
            #expect(waitUntil { !FileManager.default.fileExists(atPath: handover.kept) })
            #expect(try handover.run("adopt") == .exited(0))
        }
    }

    @Test("Repeating a release, with an older file of the same keychain in the place, deletes nothing")
    func restoredFileDuringRelease() throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            let copy = try handover.copyOfHome()
            #expect(try handover.run("adopt") == .exited(0))
            try handover.program().set("a", "2")
            #expect(try handover.run("release", killedAt: .prepared) == .killed(bySignal: SIGKILL))
            try handover.restore(copy)
            let report = try handover.takeBack()
            let kept = try #require(report.keptCopyPath)
            #expect(try handover.engine().value(of: "a") == "1")
            #expect(try LocalKeychain(home: kept).copyMatching(MatchRequest(query: .account("a"), includesSecrets: false)).count == 1)
            #expect(!FileManager.default.fileExists(atPath: handover.kept))
        }
    }

    @Test("Repeating a release, after the passcode was changed with keychaind and an older file was put back, deletes nothing")
    func restoredFileWithOtherPasscode() throws {
        try Handover.with { handover in
            let engine = handover.engine()
            try engine.set("swordfish")
            try engine.addItem("a", "1")
            let copy = try handover.copyOfHome()
            // The keybag is another one, and the rows are the same.
            try engine.changePasscode(
                from: try Passcode(text: "swordfish"), to: try Passcode(text: "12345"), rotatingKeys: false, autoLock: .never)
            engine.close()
            #expect(try handover.run("adopt") == .exited(0))
            #expect(try handover.run("release", killedAt: .prepared) == .killed(bySignal: SIGKILL))
            try handover.restore(copy)
            #expect(try handover.takeBack().keptCopyPath != nil)
        }
    }

    @Test("An adoption that fails at the signpost leaves no copy")
    func failedAdoption() throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            let connector = handover.connector
            #expect(throws: KeychainFailure.self) {
                // A directory without the permission to write, for a moment.
                try handover.engine().handOver(to: connector) { point in
                    guard point == .prepared else { return }
                    _ = unsafe rename(handover.home, handover.home + ".away")
                }
            }
            _ = unsafe rename(handover.home + ".away", handover.home)
            #expect(try handover.connection().keptKeychain().0 == .nothing)
            #expect(try handover.run("adopt") == .exited(0))
            #expect(try handover.asideCount == 0)
        }
    }

    @Test("A release is refused while an older file of the same keychain is in the place, and keychaind stays in charge")
    func restoredFile() throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            let copy = try handover.copyOfHome()
            #expect(try handover.run("adopt") == .exited(0))
            try handover.restore(copy)
            #expect(throws: KeychainFailure(.duplicateItem, "")) { try handover.takeBack() }
            #expect(throws: KeychainFailure(.duplicateItem, "")) { try handover.engine().handOver(to: handover.connector) }
            #expect(try handover.connection().keptKeychain().storeID == handover.engine().storeID())
        }
    }

    @Test("A file that comes back beside the mark is not used, because keychaind has what was stored since")
    func restoredFileBesideMark() throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            let copy = try handover.copyOfHome()
            #expect(try handover.run("adopt") == .exited(0))
            try handover.program().set("b", "2")
            try FileManager.default.removeItem(atPath: handover.storePath)
            for name in try FileManager.default.subpathsOfDirectory(atPath: copy) where name.contains(".db") || name.hasSuffix(".key") {
                try FileManager.default.copyItem(atPath: "\(copy)/\(name)", toPath: "\(handover.home)/\(name)")
            }
            #expect(throws: KeychainFailure(.notAvailable, "")) { try handover.program().set("b", "3") }
            #expect(throws: KeychainFailure(.notAvailable, "")) { try handover.takeBack() }
            // As the message says.
            try FileManager.default.removeItem(atPath: handover.storePath)
            #expect(try handover.program().value(of: "b") == "2")
            #expect(try handover.takeBack().rowCount == 2)
            #expect(try handover.program().value(of: "b") == "2")
        }
    }

    @Test("Adopting an older file of a keychain whose adoption was interrupted keeps the copy of that")
    func restoredFileDuringAdoption() throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            let copy = try handover.copyOfHome()
            try handover.engine().addItem("b", "2")
            #expect(try handover.run("adopt", killedAt: .placed) == .killed(bySignal: SIGKILL))
            try handover.restore(copy)
            #expect(try handover.run("adopt") == .exited(0))
            #expect(try handover.asideCount == 1)
            #expect(try handover.program().items().count == 1)
            #expect(try Handover.rows(of: LocalKeychain(home: handover.kept + ".aside-1")).count == 2)
        }
    }

    @Test("A keychain that appears in the place during a release stays, and keychaind's is not lost")
    func appearingKeychain() throws {
        try Handover.with { handover in
            try handover.adopt()
            let other = LocalKeychain(home: handover.home + "/other")
            try other.addItem("b", "2")
            other.close()
            #expect(throws: KeychainFailure(.duplicateItem, "")) {
                try handover.takeBack { point in
                    guard point == .prepared else { return }
                    _ = unsafe rename(handover.home + "/other/keychain.db", handover.storePath)
                }
            }
            // That of the other keychain.
            #expect(try handover.keyFileCount == 1)
            #expect(!Signpost.isPresent(at: handover.storePath))
            #expect(unsafe rename(handover.storePath, handover.home + "/other/keychain.db") == 0)
            #expect(try LocalKeychain(home: handover.home + "/other").value(of: "b") == "2")
            #expect(try handover.takeBack().rowCount == 1)
            #expect(try handover.program().value(of: "a") == "1")
        }
    }

    @Test("A program that meets a signpost while the keychain is given back uses the file")
    func firstMeeting() throws {
        try Handover.with { handover in
            try handover.adopt()
            let isReleased = Mutex(false)
            let (home, connector) = (handover.home, handover.connector)
            let program = UserKeychain(handover.engine()) { deadline throws(KeychainFailure) in
                let isFirst = isReleased.withLock { isReleased in
                    defer { isReleased = true }
                    return !isReleased
                }
                if isFirst {
                    let client = DaemonClient(entitlements: Entitlements(applicationIdentifier: ""), connector: connector)
                    _ = try LocalKeychain(home: home).takeBack(ofUser: CurrentProcess.effectiveUserID, from: DaemonHandover(client))
                }
                return try connector(deadline)
            }
            #expect(try program.value(of: "a") == "1")
            try program.set("b", "2")
            #expect(try handover.engine().value(of: "b") == "2")
        }
    }

    // MARK: Programs that keep others out

    @Test("A program that asks for an adoption does not keep the others from a keychain that is in use")
    func adoptionOfUsedKeychain() throws {
        try Handover.with { handover in
            let other = LocalKeychain(home: handover.home + "/other")
            try other.addItem("b", "2")
            let keys = try other.keysForHandover()
            try handover.adopt()
            let program = handover.program()
            #expect(try program.value(of: "a") == "1")
            let connection = try handover.connection()
            #expect(throws: KeychainFailure(.duplicateItem, "")) { try connection.beginAdoption(of: keys) }
            #expect(try program.value(of: "a") == "1")
            #expect(try handover.takeBack().rowCount == 1)
        }
    }

    @Test("Of programs that hand the keychain over at once, one does it, and the others are led to keychaind", arguments: 0..<3)
    func simultaneousAdoptions(round: Int) async throws {
        let service = try SpawnedService(adopting: false)
        let (home, connector) = (service.directory.path + "/home", DaemonClient.connector(toSocketAt: service.path))
        try LocalKeychain(home: home).addItem("a", "1")
        let isMoved = Mutex(false)
        let programs = (0..<4).map { number in
            { @Sendable () -> KeychainFailure? in
                let engine = LocalKeychain(home: home)
                if number == 0 {
                    defer { isMoved.withLock { $0 = true } }
                    do throws(KeychainFailure) { _ = try engine.handOver(to: connector) } catch { return error }
                    return nil
                }
                // Opens the keychain again and again while it is handed over.
                while !isMoved.withLock({ $0 }) {
                    do throws(KeychainFailure) {
                        _ = try LocalKeychain(home: home).storeID()
                        _ = try LocalKeychain(home: home).value(of: "a")
                    } catch {
                        guard case .keptByDaemon? = error.cause else { return error }
                    }
                }
                return nil
            }
        }
        for failure in await onThreads(programs) { #expect(failure == nil, "\(String(describing: failure))") }
    }

    @Test("A keybag that is not authentic begins no adoption")
    func forgedKeybag() throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            let keys = try handover.engine().keysForHandover()
            let forged = KeychainKeys(
                storeID: .random(), keybag: keys.keybag, keybagGeneration: keys.keybagGeneration, deviceSecret: keys.deviceSecret)
            let connection = try handover.connection()
            #expect(throws: KeychainFailure(.decode, "")) { try connection.beginAdoption(of: forged) }
            #expect(!FileManager.default.fileExists(atPath: handover.kept))
            #expect(try handover.run("adopt") == .exited(0))
        }
    }

    @Test("A program without a signpost makes no keychain with keychaind, which would be in the way of an adoption")
    func noSignpost() throws {
        try Handover.with { handover in
            #expect(throws: KeychainFailure(.notAvailable, "")) { try handover.service.client().set("a", "1") }
            #expect(!FileManager.default.fileExists(atPath: handover.kept))
            try handover.adopt()
            #expect(throws: KeychainFailure(.notAvailable, "")) { try handover.service.client().value(of: "a") }
        }
    }

    @Test("A release ends an adoption that goes on")
    func releaseDuringAdoption() throws {
        try Handover.with { handover in
            try handover.engine().addItem("a", "1")
            let keys = try handover.engine().keysForHandover()
            let connection = try handover.connection()
            try connection.beginAdoption(of: keys)
            try handover.engine().forEachHandedOverRow { row throws(KeychainFailure) in try connection.insert([row]) }
            try connection.prepareAdoption()
            try Signpost(storeID: keys.storeID).replaceStore(at: handover.storePath)
            #expect(try handover.takeBack().rowCount == 1)
            #expect(throws: KeychainFailure(.notAvailable, "")) { try connection.finishAdoption() }
        }
    }

    @Test("A handover whose program has stopped ends")
    func stoppedProgram() throws {
        try withTemporaryDirectory { directory in
            let service = try InProcessService(keychainsIn: directory + "/keychains", handoverTimeoutSeconds: 1)
            let engine = LocalKeychain(home: directory + "/home")
            try engine.addItem("a", "1")
            let keys = try engine.keysForHandover()
            let connector = DaemonClient.connector(toSocketAt: service.path)
            let client = DaemonClient(entitlements: Entitlements(applicationIdentifier: ""), connector: connector)
            let stopped = try DaemonHandover(client)
            try stopped.beginAdoption(of: keys)
            #expect(waitUntil { (try? DaemonHandover(client).keptKeychain().0) == .nothing })
            #expect(try engine.handOver(to: connector).rowCount == 1)
            #expect(throws: KeychainFailure(.notAvailable, "")) { try stopped.insert([]) }
        }
    }
}
