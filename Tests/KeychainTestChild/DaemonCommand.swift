// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainIPC
import KeychainSystem

extension ChildCommand {
    /// SOCKET STORE-ID DECLARED-GROUP ACTION [ARGUMENT ...]: uses the keychain that keychaind keeps, and prints the result of the action.
    ///
    /// The actions are `identity`, `identify PROCESS`, `get ACCOUNT`, `set ACCOUNT VALUE`, `protect ACCOUNT VALUE` with a new password, `find GROUP`, `add GROUP`, and
    /// `attempts`: many calls, and why they have failed. `work` stores, reads, and deletes items; `flood` goes on for ever.
    static func useDaemon(_ arguments: [String]) throws {
        guard arguments.count > 3, let storeID = StoreID(hexadecimal: arguments[1]) else { throw BadArguments() }
        let (declared, action) = (arguments[2], Array(arguments[3...]))
        let makeClient = {
            DaemonKeychain(
                DaemonClient(
                    entitlements: Entitlements(applicationIdentifier: "any", keychainAccessGroups: [declared]), storeID: storeID,
                    connector: DaemonClient.connector(toSocketAt: arguments[0])))
        }
        let keychain = makeClient()
        switch action[0] {
        case "identity":
            let identity = try keychain.identity()
            say("level \(identity.level.rawValue) \(identity.accessGroups.joined(separator: " "))")
        case "identify":
            guard action.count > 1, let process = Int32(action[1]) else { throw BadArguments() }
            say(try keychain.identity(ofProcess: process) ?? "unidentified")
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
        case "work":
            for number in 0..<100 {
                let account = "item \(number)-\(Identifier128.random().hexadecimal)"
                _ = try keychain.add(item(account, "value", in: nil))
                let query = ItemQuery(itemClass: .genericPassword, attributes: ItemAttributes([.account: .string(account)]))
                let items = try keychain.copyMatching(MatchRequest(query: query, includesSecrets: true))
                guard items.first?.secret == Data("value".utf8) else { return say("another value was found") }
                try keychain.delete(DeleteRequest(query: query))
            }
            say("worked")
        case "flood": flood(keychain, connectionsTo: arguments[0], makeClient)
        default: throw BadArguments()
        }
    }

    /// Connects, writes, and searches for everything as fast as it goes, for ever.
    ///
    /// Says so once keychaind has refused a connection.
    private static func flood(_ keychain: DaemonKeychain, connectionsTo path: String, _ makeClient: () -> DaemonKeychain) {
        for _ in 0..<4 {
            Thread.detachNewThread {
                for number in 0... {
                    _ = try? keychain.add(item("flood \(number % 500)", String(repeating: "x", count: 10_000), in: nil))
                    _ = try? keychain.copyMatching(MatchRequest(query: ItemQuery(itemClass: .genericPassword), includesSecrets: true))
                }
            }
        }
        var hasSaid = false
        while true {
            let connections = (0..<200).compactMap { _ in try? HeldConnection(path) }
            withExtendedLifetime(connections) {
                do throws(KeychainFailure) {
                    _ = try makeClient().sessionStatus()
                } catch {
                    guard error.cause == .busy, !hasSaid else { return }
                    say("refused")
                    hasSaid = true
                }
            }
        }
    }

    private final class HeldConnection {
        private let socket: PacketSocket

        init(_ path: String) throws(Errno) { socket = try PacketSocket(connectingTo: path, until: .after(milliseconds: 100)) }
    }

    private static func item(_ account: String, _ value: String, in group: String?) -> AddRequest {
        var attributes = ItemAttributes([.account: .string(account)])
        attributes[.accessGroup] = group.map { .string($0) }
        return AddRequest(itemClass: .genericPassword, attributes: attributes, secret: Data(value.utf8))
    }
}
