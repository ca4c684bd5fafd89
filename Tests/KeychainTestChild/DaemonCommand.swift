// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
import KeychainCore
import KeychainIPC

extension ChildCommand {
    /// SOCKET DECLARED-GROUP ACTION [ARGUMENT ...]: uses the keychain that keychaind keeps, and prints the result of the action.
    ///
    /// The actions are `identity`, `get ACCOUNT`, `set ACCOUNT VALUE`, `find GROUP`, `add GROUP`, and `attempts`: many calls, and why they
    /// have failed.
    static func useDaemon(_ arguments: [String]) throws {
        guard arguments.count > 2 else { throw BadArguments() }
        let keychain = DaemonKeychain(
            DaemonClient(
                entitlements: Entitlements(applicationIdentifier: "any", keychainAccessGroups: [arguments[1]]),
                connector: DaemonClient.connector(toSocketAt: arguments[0])))
        switch arguments[2] {
        case "identity":
            let identity = try keychain.identity()
            say("level \(identity.level.rawValue) \(identity.accessGroups.joined(separator: " "))")
        case "set":
            _ = try keychain.add(item(arguments[3], arguments[4], in: nil))
            say("stored")
        case "add":
            _ = try keychain.add(item("account", "value", in: arguments[3]))
            say("stored")
        case "find", "get":
            var query = ItemQuery(itemClass: .genericPassword)
            query.attributes[arguments[2] == "find" ? .accessGroup : .account] = .string(arguments[3])
            let items = try keychain.copyMatching(MatchRequest(query: query, includesSecrets: true))
            say("found \(String(decoding: items.first?.secret ?? Data(), as: UTF8.self))")
        case "attempts":
            let causes = (0..<200).map { _ in
                do throws(KeychainFailure) {
                    _ = try keychain.sessionStatus()
                    return "none"
                } catch {
                    return error.cause.map { "\($0)" } ?? "none"
                }
            }
            say("failed by \(Set(causes).sorted().joined(separator: " "))")
        default: throw BadArguments()
        }
    }

    private static func item(_ account: String, _ value: String, in group: String?) -> AddRequest {
        var attributes = ItemAttributes([.account: .string(account)])
        attributes[.accessGroup] = group.map { .string($0) }
        return AddRequest(itemClass: .genericPassword, attributes: attributes, secret: Data(value.utf8))
    }
}
