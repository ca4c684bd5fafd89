// SPDX-License-Identifier: Apache-2.0
import Foundation
import Valet

/// A valet that can tell all its keys: with one answer, or without any.
enum ListableValet {
    case plain(Valet)
    case singlePrompt(SinglePromptSecureEnclaveValet, reason: String)

    func allKeys() throws(KeychainError) -> Set<String> {
        switch self {
        case .plain(let valet): try valet.allKeys()
        case .singlePrompt(let valet, let reason): try valet.allKeys(userPrompt: reason)
        }
    }

    func object(forKey key: String) throws(KeychainError) -> Data {
        switch self {
        case .plain(let valet): try valet.object(forKey: key)
        case .singlePrompt(let valet, let reason): try valet.object(forKey: key, withPrompt: reason)
        }
    }

    /// Searches with the valet's own query.
    func withItemQuery<Result>(_ search: ([String: Any]) throws -> Result) throws -> Result {
        switch self {
        case .plain(let valet): try search(valet.itemQuery)
        case .singlePrompt(let valet, let reason): try valet.withItemQuery(userPrompt: reason, search)
        }
    }
}

extension SelectedValet {
    /// Throws for a valet whose items are released one by one.
    func listable(reason: String) throws(CommandFailure) -> ListableValet {
        switch valet {
        case .plain(let valet): return .plain(valet)
        case .singlePrompt(let valet): return .singlePrompt(valet, reason: reason)
        case .secureEnclave:
            throw CommandFailure(
                .usage, "the keys of this valet cannot be listed: each of its items has to be released by itself",
                advice: "`valet exists` tells of one key. In a valet with --single-prompt one answer serves a list."
            )
        }
    }
}
