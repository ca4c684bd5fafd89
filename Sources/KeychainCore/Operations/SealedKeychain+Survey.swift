// SPDX-License-Identifier: Apache-2.0

/// Where a generic password is: the program or group that it belongs to, its service, its accessibility, and whether it is synchronizable.
package struct ItemPlace: Hashable, Sendable {
    package let accessGroup: String
    package let service: String
    package let accessibility: ItemAccessibility
    package let isSynchronizable: Bool

    package init(accessGroup: String, service: String, accessibility: ItemAccessibility, isSynchronizable: Bool) {
        self.accessGroup = accessGroup
        self.service = service
        self.accessibility = accessibility
        self.isSynchronizable = isSynchronizable
    }
}

/// The accounts of the generic passwords of all programs, by place, and the number of their internet passwords.
package struct ItemSurvey: Sendable {
    package var accounts: [ItemPlace: [String]] = [:]
    /// By access group.
    package var internetPasswordCounts: [String: Int] = [:]
    /// Items of which nothing can be said: they are locked, damaged, of a newer version, or have access control.
    package var unreadableCount = 0

    package init() {}

    /// The survey without the items of other access groups.
    package func filtered(_ isIncluded: (_ accessGroup: String) -> Bool) -> ItemSurvey {
        var survey = self
        survey.accounts = accounts.filter { isIncluded($0.key.accessGroup) }
        survey.internetPasswordCounts = internetPasswordCounts.filter { isIncluded($0.key) }
        return survey
    }
}

/// A keychain that can tell where items are, also those of other programs.
package protocol SurveyableKeychain: Sendable {
    /// Returns where the generic passwords of all programs are, and how many internet passwords they have.
    ///
    /// Where keychaind has the keychain, those of programs with an identity are left out, except the caller's own, but not from the number of items that are
    /// unreadable. Throws the errors of opening the keychain, and `.missingEntitlement` for a program in a sandbox.
    func survey() throws(KeychainFailure) -> ItemSurvey

    /// Returns where the generic passwords with this account and one of these services are, or with any service if `services` is nil.
    ///
    /// Items that are locked or damaged, or have access control, are left out, and where keychaind has the keychain those that `survey` leaves out.
    /// Throws as `survey` does.
    func places(ofAccount account: String, services: [String]?) throws(KeychainFailure) -> [ItemPlace]
}

/// Searches that do not obey access groups, for the person who owns the keychain.
extension SealedKeychain {
    /// Returns where every item is, and reads no secret.
    package func survey() throws(KeychainFailure) -> ItemSurvey {
        let keychain = scopedToCall
        var survey = ItemSurvey()
        try store.read { reading throws(KeychainFailure) in
            guard try isKeybagCurrent(reading) else { throw Self.keybagChanged }
            for itemClass in [ItemClass.genericPassword, .internetPassword] {
                let query = RowQuery(itemClass: itemClass, isTombstone: false)
                let skipped = try reading.forEachReadableRow(matching: query, includingSecrets: false) { row throws(KeychainFailure) in
                    guard let (place, account) = try keychain.place(of: row, in: reading) else {
                        survey.unreadableCount += 1
                        return .proceed
                    }
                    // No program has the keys of synchronization itself.
                    guard !Entitlements.isOfSynchronization(place.accessGroup) else { return .proceed }
                    switch itemClass {
                    case .internetPassword: survey.internetPasswordCounts[place.accessGroup, default: 0] += 1
                    default: survey.accounts[place, default: []].append(account)
                    }
                    return .proceed
                }
                survey.unreadableCount += skipped.damagedPageRowCount
            }
        }
        return survey
    }

    /// Returns where the generic passwords with this account and one of these services are, whichever program they belong to.
    ///
    /// `services` is nil for any service. Items that are locked or damaged, or have access control, are left out.
    package func places(ofAccount account: String, services: [String]?) throws(KeychainFailure) -> [ItemPlace] {
        let keychain = scopedToCall
        var places: [ItemPlace] = []
        try store.read { reading throws(KeychainFailure) in
            guard try isKeybagCurrent(reading) else { throw Self.keybagChanged }
            for service in services.map({ $0.map(Optional.some) }) ?? [nil] {
                let query = RowQuery(
                    itemClass: .genericPassword,
                    serviceDigest: try service.map { service throws(KeychainFailure) in
                        try digests.digest(of: .string(service), for: .service, in: .genericPassword)
                    },
                    accountDigest: try digests.digest(of: .string(account), for: .account, in: .genericPassword), isTombstone: false)
                _ = try reading.forEachReadableRow(matching: query, includingSecrets: false) { row throws(KeychainFailure) in
                    guard let place = try keychain.place(of: row, in: reading)?.place else { return .proceed }
                    if !Entitlements.isOfSynchronization(place.accessGroup) { places.append(place) }
                    return .proceed
                }
            }
        }
        return places
    }

    private func place(of row: SealedRow, in reading: any ItemReading) throws(KeychainFailure) -> (place: ItemPlace, account: String)? {
        guard case .opened(let opened) = try open(row, includingSecret: false, in: reading),
            let group = opened.attributes.text(.accessGroup)
        else { return nil }
        let place = ItemPlace(
            accessGroup: group, service: opened.attributes.text(.service) ?? "", accessibility: row.header.accessibility,
            isSynchronizable: row.header.isSynchronizable)
        return (place, opened.attributes.text(.account) ?? "")
    }
}
