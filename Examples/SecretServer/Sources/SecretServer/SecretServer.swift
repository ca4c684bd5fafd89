// SPDX-License-Identifier: Apache-2.0
import Configuration
import Foundation
import Hummingbird
import Valet
import ValetConfiguration

/// An HTTP server that takes the password of its database from the keychain, and uses a new one as soon as it is stored.
///
///     printf swordfish | valet set database-password --app SecretServer --identifier secret-server --accessibility after-first-unlock
///     swift run SecretServer
///     curl localhost:8080/database
///
/// In development, without that value in the keychain, the password comes from the environment: `DATABASE_PASSWORD=test swift run`.
@main
struct SecretServer {
    static func main() async {
        do {
            try await serve()
        } catch {
            // For example: "The keychain is locked. Run `valet unlock`."
            FileHandle.standardError.write(Data("SecretServer: \((error as? ValetFailure)?.errorDescription ?? "\(error)")\n".utf8))
            exit(1)
        }
    }

    static func serve() async throws {
        let secrets = Valet.valet(with: "secret-server", accessibility: .afterFirstUnlock)
        let config = ConfigReader(providers: [ValetProvider(secrets), EnvironmentVariablesProvider()])
        // A keychain that is locked or damaged ends the program here, with the reason.
        let database = Database(password: try await config.fetchRequiredString(forKey: "database.password", isSecret: true))

        let router = Router()
        router.get("database") { _, _ in await database.description }
        let port = config.int(forKey: "http.port", default: 8080)
        let server = Application(router: router, configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port)))

        try await withThrowingTaskGroup { group in
            group.addTask { try await server.runService() }
            group.addTask {
                try await config.watchString(forKey: "database.password", isSecret: true) { passwords in
                    // The first element is the present password.
                    for await password in passwords {
                        guard let password else { continue }
                        await database.reconnect(password: password)
                    }
                }
            }
            // The server ends with a signal.
            try await group.next()
            group.cancelAll()
        }
    }
}

/// Stands for a client of a database, which keeps its password to itself.
actor Database {
    private var password: String
    private var connectionCount = 1

    init(password: String) {
        self.password = password
    }

    func reconnect(password: String) {
        guard password != self.password else { return }
        self.password = password
        connectionCount += 1
    }

    var description: String { "connection \(connectionCount)\n" }
}
