// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
import KeychainCore
import KeychainIPC

extension ChildCommand {
    /// SOCKET STORE-ID DECLARED-GROUP ACTION [ARGUMENT ...]: uses the keychain that keychaind keeps, and prints the result of the action.
    ///
    /// The actions are `identity`, `get ACCOUNT`, `set ACCOUNT VALUE`, `protect ACCOUNT VALUE` with a new password, `find GROUP`, `add GROUP`, and
    /// `attempts`: many calls, and why they have failed.
    static func useDaemon(_ arguments: [String]) throws {
        guard arguments.count > 3, let storeID = StoreID(hexadecimal: arguments[1]) else { throw BadArguments() }
        let (declared, action) = (arguments[2], Array(arguments[3...]))
        let keychain = DaemonKeychain(
            DaemonClient(
                entitlements: Entitlements(applicationIdentifier: "any", keychainAccessGroups: [declared]), storeID: storeID,
                connector: DaemonClient.connector(toSocketAt: arguments[0])))
        switch action[0] {
        case "identity":
            let identity = try keychain.identity()
            say("level \(identity.level.rawValue) \(identity.accessGroups.joined(separator: " "))")
        case "set":
            _ = try keychain.add(item(action[1], action[2], in: nil))
            say("stored")
        case "protect":
            var request = item(action[1], action[2], in: nil)
            request.accessControl = AccessControl(.whenUnlocked, constraint: .applicationPassword)
            _ = try keychain.add(request)
            say("stored")
        case "add":
            _ = try keychain.add(item("account", "value", in: action[1]))
            say("stored")
        case "find", "get":
            var query = ItemQuery(itemClass: .genericPassword)
            query.attributes[action[0] == "find" ? .accessGroup : .account] = .string(action[1])
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
