// SPDX-License-Identifier: Apache-2.0

/// Which access groups a call may touch. In-process this guards against mistakes, not against another program of the user.
extension Entitlements {
    package enum Access: Sendable {
        case read, write
    }

    /// The groups a search covers: the one it names, else all that the program may use in this way.
    package func groups(forSearchNaming explicit: String?, access: Access) throws(KeychainFailure) -> [String] {
        try requireAnyGroup()
        if let explicit {
            try require(explicit, access: access)
            return [explicit]
        }
        return access == .write ? accessGroups.filter(canWrite) : accessGroups
    }

    /// The group of a new item.
    package func group(forNewItemNaming explicit: String?) throws(KeychainFailure) -> String {
        try requireAnyGroup()
        guard let group = explicit ?? defaultGroup else { throw noGroups }
        try require(group, access: .write)
        return group
    }

    package func require(_ group: String, access: Access) throws(KeychainFailure) {
        guard access == .write ? canWrite(group) : canRead(group) else {
            throw KeychainFailure(
                .missingEntitlement,
                "this program is not entitled to the access group '\(group)': add it to keychain-access-groups in \(origin)"
            )
        }
    }

    /// App clips have their own group and nothing else.
    package func requireSynchronizationAllowed() throws(KeychainFailure) {
        guard !isAppClip else {
            throw KeychainFailure(.restrictedAPI, "an app clip cannot store synchronizable items")
        }
    }

    private func requireAnyGroup() throws(KeychainFailure) {
        guard !accessGroups.isEmpty else { throw noGroups }
        guard !isAppClip || accessGroups.filter({ $0 != Self.tokenGroup }) == [applicationIdentifier] else {
            throw KeychainFailure(.restrictedAPI, "an app clip may use its own access group only")
        }
    }

    private var noGroups: KeychainFailure {
        KeychainFailure(
            .missingEntitlement,
            "this program has no access group: give it application-identifier or keychain-access-groups in \(origin)"
        )
    }
}
