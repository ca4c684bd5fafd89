// SPDX-License-Identifier: Apache-2.0

// swift-format-ignore-file: NeverForceUnwrap
// The examples are those of README.md and of the DocC articles, line for line.

import Foundation
import KeychainServices
import KeychainTesting
import KeychainTestingTraits
import Locksmith
import Testing
import Valet

struct Credentials: Codable, Sendable {
    var user: String
    var token: String
}

extension ValetKey<Credentials> {
    static let github = ValetKey("github")
}

struct Session: Codable, Sendable {
    var token: String
    var expiration: Date
    var isExpired: Bool { expiration < Date() }
}

extension ValetKey<Session> {
    static let session = ValetKey("session")
}

struct Account {
    let vault: Valet

    var credentials: Credentials {
        get throws { try vault.value(for: .github) }
    }
}

@Suite("README's examples")
struct ReadmeExamples {
    @Test("Typed keys", .inMemoryKeychain)
    func typedKeys() throws {
        let vault = Valet.valet(with: "ghx", accessibility: .afterFirstUnlock)
        try vault.set(Credentials(user: "Skroob", token: "12345"), for: .github)
        let credentials = try vault.value(for: .github)
        let maybe = try vault.valueIfPresent(for: .github)
        try vault.update(.github) { $0.token = "67890" }
        try vault.removeValue(for: .github)
        #expect(credentials.token == "12345" && maybe?.user == "Skroob")
        #expect(try vault.valueIfPresent(for: .github) == nil)
        try vault.set(credentials, for: .github)
        #expect(try Account(vault: vault).credentials.user == "Skroob")
        try vault.removeValue(for: .github)

        do {
            print("Hello, \(try vault.value(for: .github).user)")
        } catch {
            switch error.reason {
            case .notFound: print("Sign in first.")
            case .locked: print("Unlock the keychain and try again.")
            case .notDecodable(let codingPath): print("The stored credentials have another form at \(codingPath.joined(separator: ".")).")
            default: print(error.localizedDescription)
            }
        }
        let failure = #expect(throws: ValetFailure.self) { try vault.value(for: .github) }
        #expect(failure?.reason == .notFound)
    }

    @Test("Asynchronous calls of typed keys", .inMemoryKeychain)
    func asynchronousCalls() async throws {
        func renew(_ session: Session) async throws -> Session {
            Session(token: session.token + "0", expiration: .distantFuture)
        }
        let vault = Valet.valet(with: "ghx", accessibility: .afterFirstUnlock)
        try vault.set(Credentials(user: "Skroob", token: "12345"), for: .github)
        let saved = try await vault.asynchronously.value(for: .github)
        try await vault.asynchronously.setString("swordfish", forKey: "database")
        #expect(try saved.user == "Skroob" && vault.string(forKey: "database") == "swordfish")

        try vault.set(Session(token: "1", expiration: .distantPast), for: .session)
        let session = try await vault.asynchronously.refresh(.session, if: \.isExpired) { try await renew($0) }
        #expect(session.token == "10" && !session.isExpired)
    }

    @Test("Changes", .inMemoryKeychain)
    func changes() async throws {
        let vault = Valet.valet(with: "ghx", accessibility: .afterFirstUnlock)
        let listener = Task {
            var values: [String?] = []
            func reload() {
                values.append(try? vault.string(forKey: "database"))
                if values.count > 1 { return unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
                try? vault.setString("swordfish", forKey: "database")
            }
            let changes = vault.changes
            reload()
            for await _ in changes { reload() }
            return values
        }
        #expect(await listener.value == [nil, "swordfish"])
    }

    @Test("Five lines store and read a secret", .inMemoryKeychain)
    func fiveLines() throws {
        let vault = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)
        try vault.setString("12345", forKey: "Skroob")
        let combination = try vault.string(forKey: "Skroob")
        #expect(combination == "12345")
    }

    @Test("Valets are separate, errors are specific, and a migration can transform values", .inMemoryKeychain)
    func valets() throws {
        let mine = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)
        let ours = Valet.sharedGroupValet(
            with: SharedGroupIdentifier(appIDPrefix: "AppID12345", nonEmptyGroup: "Druidia")!, accessibility: .whenUnlocked)
        let everywhere = Valet.iCloudValet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)
        #expect(mine != ours && ours != everywhere && mine != everywhere)

        do {
            let combination = try mine.string(forKey: "Skroob")
            print("The same as on my luggage: \(combination.count) digits")
        } catch KeychainError.itemNotFound {
            try mine.setString("12345", forKey: "Skroob")
        }
        #expect(try mine.string(forKey: "Skroob") == "12345")

        let before = Valet.valet(with: Identifier(nonEmpty: "Planet Druidia")!, accessibility: .whenUnlocked)
        try before.setString("Vespa", forKey: "princess")
        try before.setString("fresh", forKey: "air")
        let old = Valet.valet(with: Identifier(nonEmpty: "Planet Druidia")!, accessibility: .whenUnlocked)
        try mine.migrateObjects(from: old) { pair in
            guard let key = pair.key as? String, key != "air" else { return nil }
            return MigratableKeyValuePair(key: "Druidia " + key, value: pair.value)
        }
        #expect(try mine.string(forKey: "Druidia princess") == "Vespa")
        #expect(try mine.allKeys() == ["Skroob", "Druidia princess"])
    }

    @Test("Code written for Apple's frameworks runs unchanged", .inMemoryKeychain)
    func appleCode() throws {
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrService as String: "Druidia",
            kSecAttrAccount as String: "Skroob",
            kSecValueData as String: Data("12345".utf8),
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)

        var result: CFTypeRef?
        let query: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword,
            kSecAttrService as String: "Druidia",
            kSecAttrAccount as String: "Skroob",
            kSecReturnData as String: true,
        ]
        // The pointer is used during the call only.
        let status = unsafe SecItemCopyMatching(query as CFDictionary, &result)
        #expect(status == errSecSuccess)
        #expect(result as? Data == Data("12345".utf8))
    }

    @Test("A mutable dictionary is passed directly", .inMemoryKeychain)
    func mutableDictionary() {
        let item: [String: Any] = [
            kSecClass as String: kSecClassGenericPassword, kSecAttrAccount as String: "Skroob", kSecValueData as String: Data(),
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
        let query = NSMutableDictionary()
        query[kSecClass as String] = kSecClassGenericPassword
        query[kSecAttrAccount as String] = "Skroob"
        query[kSecReturnData as String] = kCFBooleanTrue
        let status = SecItemCopyMatching(query, nil)
        #expect(status == errSecSuccess)
    }

    @Test("A program unlocks the keychain if a passcode is set", .inMemoryKeychain, arguments: [false, true])
    func unlocking(isPasscodeSet: Bool) throws {
        let passcode = "swordfish"
        if isPasscodeSet {
            try KeychainSession.current().setPasscode(passcode)
            try KeychainSession.current().lock()
        }

        let session = try KeychainSession.current()
        if try session.isPasscodeSet { try session.unlock(passcode: passcode) }
        #expect(try session.state == .unlocked)
    }

    @Test("A program waits until another process unlocks the keychain", .inMemoryKeychain)
    func waiting() async throws {
        let passcode = "swordfish"
        try KeychainSession.current().setPasscode(passcode)
        try KeychainSession.current().lock()
        async let unlocking: Void = KeychainSession.current().unlock(passcode: passcode)

        for try await state in try KeychainSession.current().stateChanges where state == .unlocked { break }
        #expect(try KeychainSession.current().state == .unlocked)
        try await unlocking
    }

    @Test("A type with Locksmith's protocols is stored, read, and migrated", .inMemoryKeychain)
    func locksmith() throws {
        struct TwitterAccount: GenericPasswordSecureStorable, CreateableSecureStorable, ReadableSecureStorable, DeleteableSecureStorable {
            let account: String
            let service = "Twitter"
            var password = ""
            var data: [String: Any] { ["password": password] }
        }

        try TwitterAccount(account: "Skroob", password: "12345").createInSecureStore()
        let result = TwitterAccount(account: "Skroob").readFromSecureStore()
        let password = result?.data?["password"] as? String
        #expect(password == "12345")

        let vault = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)
        let items: [String: AnyHashable] = [kSecClass as String: kSecClassGenericPassword as String, kSecAttrService as String: "Twitter"]
        try vault.migrateObjects(matching: items, removeOnCompletion: false)
        let dictionary = try Locksmith.data(inValue: vault.object(forKey: "Skroob"))
        #expect(dictionary["password"] as? String == "12345")

        for key in try vault.allKeys() { try Locksmith.updateData(["value": vault.object(forKey: key)], forUserAccount: key) }
        #expect(try Locksmith.userAccounts() == ["Skroob"])
    }

    @Test("Locksmith stores an internet password and a custom type", .inMemoryKeychain)
    func locksmithTypes() throws {
        struct TwitterAccount: InternetPasswordSecureStorable, CreateableSecureStorable, ReadableSecureStorable {
            let account: String
            var password = ""
            var data: [String: Any] { ["password": password] }

            let server = "com.twitter"
            let port = 443
            let internetProtocol = LocksmithInternetProtocol.https
            let authenticationType = LocksmithInternetAuthenticationType.httpBasic
            let path: String? = "/api/2.0/"
        }

        try TwitterAccount(account: "Skroob", password: "12345").createInSecureStore()
        let result = TwitterAccount(account: "Skroob").readFromSecureStore()
        let port = result?.port
        let password = result?.data?["password"] as? String
        #expect(port == 443 && password == "12345")

        struct Credentials: Codable {
            var password: String
            var expires: Date?
        }

        struct Login: CodableSecureStorable, GenericPasswordSecureStorable {
            typealias Payload = Credentials
            let account: String
            let service = "Twitter"
        }

        try Login(account: "Helmet").createInSecureStore(payload: Credentials(password: "12345"))
        let credentials = try Login(account: "Helmet").readPayloadFromSecureStore()
        #expect(credentials?.password == "12345")
    }

    #if !canImport(Darwin)
    @Test("A prompt releases a value", .inMemoryKeychain)
    func secureEnclave() throws {
        let keychain = try #require(InMemoryKeychain.current)
        try keychain.setPasscode("swordfish")
        keychain.person.answers(.correctPasscode)

        let luggage = SecureEnclaveValet.valet(with: Identifier(nonEmpty: "Luggage")!, accessControl: .userPresence)
        try luggage.setString("12345", forKey: "combination")
        let code = try luggage.string(forKey: "combination", withPrompt: "Open the luggage")

        #expect(code == "12345")
        #expect(keychain.person.questions.map(\.reason) == ["Open the luggage"])
    }
    #endif

    @Test(.inMemoryKeychain) func signingOutForgetsTheToken() throws {
        let vault = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .whenUnlocked)
        try vault.setString("12345", forKey: "Skroob")
        try vault.removeAllObjects()
        #expect(try vault.allKeys().isEmpty)
    }
}

#if !canImport(Darwin)
/// A program whose items can be locked when it starts.
struct App {
    let vault = Valet.valet(with: Identifier(nonEmpty: "Druidia")!, accessibility: .afterFirstUnlock)

    func start() throws -> String {
        do {
            return "Welcome, \(try vault.string(forKey: "name"))"
        } catch KeychainError.itemNotFound {
            return "Who are you?"
        } catch KeychainError.couldNotAccessKeychain {
            return "Waiting for the keychain"
        }
    }
}

/// A program that asks a person.
struct Safe {
    func open() async throws -> String {
        do {
            try await LAContext().evaluatePolicy(.deviceOwnerAuthentication, localizedReason: "open the safe")
            return "Open"
        } catch LAError.userCancel {
            return "Another time"
        }
    }
}

@Suite("Examples of tests with an in-memory keychain")
struct KeychainTestingExamples {
    @Test(.inMemoryKeychain) func waitsWhileTheKeychainIsLocked() throws {
        try App().vault.setString("Skroob", forKey: "name")
        try InMemoryKeychain.current?.restart()
        #expect(try App().start() == "Waiting for the keychain")
        try InMemoryKeychain.current?.unlock()
        #expect(try App().start() == "Welcome, Skroob")
    }

    @Test(.inMemoryKeychain) func staysShutWhenThePersonCancels() async throws {
        let keychain = try #require(InMemoryKeychain.current)
        try keychain.setPasscode("swordfish")
        keychain.person.answers(.cancel, .correctPasscode)
        #expect(try await Safe().open() == "Another time")
        #expect(try await Safe().open() == "Open")
        #expect(keychain.person.questions.first?.reason == "open the safe")
    }

    @Test(.inMemoryKeychain) func keepsTheOldNameWhenTheDiskIsFull() throws {
        try App().vault.setString("Skroob", forKey: "name")
        InMemoryKeychain.current?.fail(.writes, with: .diskFull, times: 1)
        #expect(throws: KeychainError.couldNotAccessKeychain) { try App().vault.setString("Helmet", forKey: "name") }
        #expect(try App().start() == "Welcome, Skroob")
    }

    @Test("The lock of KeychainSession", .inMemoryKeychain)
    func session() async throws {
        let passcode = "swordfish"
        let session = try KeychainSession.current()
        try session.setPasscode(passcode)
        try session.lock()
        try session.unlock(passcode: passcode)
        for try await state in session.stateChanges where state == .unlocked { break }
        #expect(try session.state == .unlocked)
    }
}
#endif

@Suite("README and documentation")
struct ReadmeTests {
    private static let documents = [
        ("README.md", 3), ("Sources/Valet/Valet.docc/Valet.md", 4), ("Sources/Valet/Valet.docc/Secure-Enclave-Valets.md", 1),
        ("Sources/Valet/Valet.docc/Getting-Started.md", 4), ("Sources/Valet/Valet.docc/Choosing-Accessibility.md", 2),
        ("Sources/Valet/Valet.docc/Sharing-Between-Programs.md", 2), ("Sources/Valet/Valet.docc/Servers-and-Containers.md", 2),
        ("Sources/Valet/Valet.docc/Migrating-from-Apple-Only-Code.md", 3),
        ("Sources/Valet/Valet.docc/Migrating-from-Other-Libraries.md", 1), ("Sources/Valet/Valet.docc/Troubleshooting.md", 2),
        ("Sources/KeychainServices/KeychainServices.docc/KeychainServices.md", 1),
        ("Sources/KeychainServices/KeychainServices.docc/Locking.md", 3),
        ("Sources/KeychainServices/KeychainServices.docc/Porting.md", 1), ("Sources/KeychainSync/KeychainSync.docc/KeychainSync.md", 2),
        ("Sources/KeychainSyncEtcd/KeychainSyncEtcd.docc/KeychainSyncEtcd.md", 1),
        ("Sources/KeychainTesting/KeychainTesting.docc/KeychainTesting.md", 7), ("Sources/Locksmith/Locksmith.docc/Locksmith.md", 5),
        ("Sources/Valet/Valet.docc/Typed-Keys.md", 6), ("Sources/ValetConfiguration/ValetConfiguration.docc/ValetConfiguration.md", 1),
        ("Sources/KeychainTestingTraits/KeychainTestingTraits.docc/KeychainTestingTraits.md", 1),
    ]

    @Test("Every Swift block in the documents is compiled and run here, line by line", arguments: documents)
    func examplesAreRun(path: String, blockCount: Int) throws {
        // `unsafe` is for packages that check it, which a reader's need not.
        let files = [
            "Tests/ArchitectureTests/ReadmeExamples.swift", "Tests/ArchitectureTests/ArticleExamples.swift",
            "Tests/ValetConfigurationTests/ValetProviderTests.swift", "Tests/KeychainSyncEtcdTests/EtcdLocationTests.swift",
        ]
        let compiled = try files.flatMap { Self.code(of: try Repository.text(of: $0).replacing("unsafe ", with: "")) }
        let blocks = Self.swiftBlocks(of: try Repository.text(of: path))
        #expect(blocks.count >= blockCount)
        for block in blocks where !Self.isManifest(block) {
            let lines = Self.code(of: block)
            let isCompiled = !lines.isEmpty && compiled.indices.contains { compiled[$0...].starts(with: lines) }
            #expect(isCompiled, "\(path) shows what is not compiled:\n\(block)")
        }
    }

    @Test("Each block imports the modules that it uses, so it can be copied on its own", arguments: documents)
    func examplesImport(path: String, blockCount: Int) throws {
        let modules = [
            ("@Test", "Testing"), (".inMemoryKeychain", "KeychainTestingTraits"), ("InMemoryKeychain.", "KeychainTesting"),
            ("Valet.valet(", "Valet"), ("KeychainError", "Valet"), ("KeychainSession", "KeychainServices"), ("SecItem", "KeychainServices"),
        ]
        for block in Self.swiftBlocks(of: try Repository.text(of: path)) {
            for (use, module) in modules where block.contains(use) {
                #expect(block.split(separator: "\n").contains("import \(module)"), "\(path) does not import \(module):\n\(block)")
            }
        }
    }

    @Test("Each Package.swift in the documents is valid, and uses products of this package")
    func manifests() throws {
        let products = Set(try Self.manifest(try Repository.text(of: "Package.swift")).products.map(\.name))
        let blocks = try Self.documents.flatMap { path, _ in Self.swiftBlocks(of: try Repository.text(of: path)) }
        let manifests = blocks.filter(Self.isManifest)
        #expect(manifests.count >= 2)
        for manifest in manifests {
            let used = try Self.manifest(manifest).targets.flatMap(\.dependencies).compactMap(\.product?.name)
            #expect(used.contains("Valet") && products.isSuperset(of: used), "products that do not exist: \(manifest)")
        }
    }

    /// The part of the output of `swift package dump-package` that is compared.
    private struct Manifest: Decodable {
        struct Product: Decodable { let name: String }
        /// An array whose first element is the name.
        struct UsedProduct: Decodable {
            let name: String

            init(from decoder: any Decoder) throws {
                var elements = try decoder.unkeyedContainer()
                name = try elements.decode(String.self)
            }
        }
        struct Dependency: Decodable { let product: UsedProduct? }
        struct Target: Decodable { let dependencies: [Dependency] }

        let products: [Product]
        let targets: [Target]
    }

    /// Compiles a manifest, without resolving its dependencies.
    private static func manifest(_ text: String) throws -> Manifest {
        let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: directory) }
        try text.write(to: directory.appending(path: "Package.swift"), atomically: true, encoding: .utf8)
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        let settings = directory.appending(path: "swiftpm").path
        process.arguments = [
            "swift", "package", "--package-path", directory.path, "--cache-path", settings, "--config-path", settings, "--security-path",
            settings, "dump-package",
        ]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let json = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "This manifest is not valid:\n\(text)")
        return try JSONDecoder().decode(Manifest.self, from: json)
    }

    private static func isManifest(_ block: String) -> Bool { block.hasPrefix("// swift-tools-version") }

    /// Without imports, comments and blank lines.
    private static func code(of text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { line in !line.isEmpty && !["import ", "@testable import ", "//"].contains { line.hasPrefix($0) } }
    }

    private static func swiftBlocks(of text: String) -> [String] {
        text.components(separatedBy: "```swift\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
    }
}
