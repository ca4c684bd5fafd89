// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import KeychainCore
import KeychainEngine
import KeychainTestSupport

extension ChildCommand {
    /// [--as-user UID] add|read|count ...: does each in turn on the keychain of the environment and says `STATUS REASON`, 0 for success.
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
                say("0 \(operation)\(try perform(operation))")
            } catch {
                say("\(error.status.rawValue) \(error.reason)")
            }
        }
    }

    /// What there is to say beside the success.
    private static func perform(_ operation: String) throws(KeychainFailure) -> String {
        // As a program would have it, but for the name that the kernel gives, which depends on what started it.
        let keychain = LocalKeychain(
            configuration: try .fromEnvironment(), entitlements: Entitlements(applicationIdentifier: "KeychainTestChild"))
        switch operation {
        case "add":
            try keychain.addItem("attempt \(UInt64.random(in: 0 ... .max))", "a secret that was added")
            return ""
        case "read", "count":
            let query = ItemQuery(itemClass: .genericPassword)
            let items = try keychain.copyMatching(MatchRequest(query: query, limit: nil, includesSecrets: true))
            return operation == "count" ? " \(items.count)" : ""
        default: throw KeychainFailure(.parameter, "unknown operation \(operation)")
        }
    }
}
