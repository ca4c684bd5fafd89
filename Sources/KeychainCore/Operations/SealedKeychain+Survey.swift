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

    // Two texts can be equal and have other bytes. A keychain compares bytes.

    package static func == (one: ItemPlace, other: ItemPlace) -> Bool {
        one.accessGroup.hasSameBytes(as: other.accessGroup) && one.service.hasSameBytes(as: other.service)
            && one.accessibility == other.accessibility && one.isSynchronizable == other.isSynchronizable
    }

    package func hash(into hasher: inout Hasher) {
        for text in [accessGroup, service] { hasher.combine(Array(text.utf8)) }
        hasher.combine(accessibility)
        hasher.combine(isSynchronizable)
    }
}

/// The accounts of the generic passwords of all programs, by place, and the number of their internet passwords.
package struct ItemSurvey: Sendable {
    package var accounts: [ItemPlace: [String]] = [:]
    /// By the bytes of the access group.
    package var internetPasswordCounts: [[UInt8]: Int] = [:]
    /// Items of which nothing can be said: they are locked, damaged, of a newer version, or have access control.
    ///
    /// 0 where keychaind has the keychain.
    package var unreadableCount = 0

    package init() {}

    /// The survey without the items of other access groups.
    ///
    /// Without the number of those that are unreadable too: it is not known whose they are.
    package func filtered(_ isIncluded: (_ accessGroup: String) -> Bool) -> ItemSurvey {
        var survey = ItemSurvey()
        survey.accounts = accounts.filter { isIncluded($0.key.accessGroup) }
        survey.internetPasswordCounts = internetPasswordCounts.filter { isIncluded(String(decoding: $0.key, as: UTF8.self)) }
        return survey
    }
}

/// A keychain that can tell where items are, also those of other programs.
package protocol SurveyableKeychain: Sendable {
    /// Returns where the generic passwords of all programs are, and how many internet passwords they have.
    ///
    /// Where keychaind has the keychain, those of programs with an identity are left out, except the caller's own. Throws the errors of opening the
    /// keychain, and `.missingEntitlement` for a program in a sandbox.
    func survey() throws(KeychainFailure) -> ItemSurvey

    /// Returns where the generic passwords with this account and one of these services are, or with any service if `services` is nil: 100 places at most.
    ///
    /// Items that are locked or damaged, or have access control, are left out, and where keychaind has the keychain those that `survey` leaves out.
    /// Throws as `survey` does, and `.parameter` for more than 100 services.
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
                    guard !Entitlements.isInternal(place.accessGroup) else { return .proceed }
                    switch itemClass {
                    case .internetPassword: survey.internetPasswordCounts[Array(place.accessGroup.utf8), default: 0] += 1
                    default: survey.accounts[place, default: []].append(account)
                    }
                    return .proceed
                }
                survey.unreadableCount += skipped.damagedPageRowCount
            }
        }
        return survey
    }

    /// Returns where the generic passwords with this account and one of these services are, whichever program they belong to, if its access group is
    /// included; see `SurveyableKeychain`.
    package func places(
        ofAccount account: String, services: [String]?, where isIncluded: (_ accessGroup: String) -> Bool
    ) throws(KeychainFailure) -> [ItemPlace] {
        guard services?.count ?? 0 <= Self.largestPlaceCount else {
            throw KeychainFailure(.parameter, "an account is looked for in at most \(Self.largestPlaceCount) services")
        }
        let keychain = scopedToCall
        var places: Set<ItemPlace> = []
        try store.read { reading throws(KeychainFailure) in
            guard try isKeybagCurrent(reading) else { throw Self.keybagChanged }
            for service in services.map({ $0.map(Optional.some) }) ?? [nil] where places.count < Self.largestPlaceCount {
                let query = RowQuery(
                    itemClass: .genericPassword,
                    serviceDigest: try service.map { service throws(KeychainFailure) in
                        try digests.digest(of: .string(service), for: .service, in: .genericPassword)
                    },
                    accountDigest: try digests.digest(of: .string(account), for: .account, in: .genericPassword), isTombstone: false)
                _ = try reading.forEachReadableRow(matching: query, includingSecrets: false) { row throws(KeychainFailure) in
                    guard let place = try keychain.place(of: row, in: reading)?.place else { return .proceed }
                    if !Entitlements.isInternal(place.accessGroup), isIncluded(place.accessGroup) { places.insert(place) }
                    return places.count < Self.largestPlaceCount ? .proceed : .stop
                }
            }
        }
        return Array(places)
    }

    /// For hints, of which a person reads a few.
    private static var largestPlaceCount: Int { 100 }

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
