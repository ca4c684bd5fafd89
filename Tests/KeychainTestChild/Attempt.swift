// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport

extension ChildCommand {
    /// [--as-user UID] add|read ...: does each in turn on the keychain of the environment and says `STATUS REASON`, 0 for success.
    static func attempt(_ arguments: [String]) throws {
        var rest = arguments[...]
        if rest.first == "--as-user" {
            guard let user = rest.dropFirst().first.flatMap({ UInt32($0) }) else { throw BadArguments() }
            // The program may lie where that user cannot reach; it is loaded by now.
            guard setregid(user, user) == 0, setreuid(user, user) == 0 else { throw BadArguments() }
            rest = rest.dropFirst(2)
        }
        for operation in rest {
            do throws(KeychainFailure) {
                try perform(operation)
                say("0 \(operation)")
            } catch {
                say("\(error.status.rawValue) \(error.reason)")
            }
        }
    }

    private static func perform(_ operation: String) throws(KeychainFailure) {
        // As a program would have it, but for the name that the kernel gives, which depends on what started it.
        let keychain = LocalKeychain(
            configuration: try .fromEnvironment(), entitlements: Entitlements(applicationIdentifier: "KeychainTestChild"))
        switch operation {
        case "add": try keychain.addItem("attempt \(UInt64.random(in: 0 ... .max))", "a secret that was added")
        case "read":
            let query = ItemQuery(itemClass: .genericPassword)
            _ = try keychain.copyMatching(MatchRequest(query: query, limit: nil, includesSecrets: true))
        default: throw KeychainFailure(.parameter, "unknown operation \(operation)")
        }
    }
}
