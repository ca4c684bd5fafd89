// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import KeychainCore
import KeychainEngine
import Valet

struct AppsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apps",
        abstract: "Show which programs have items, and the options that select them.",
        discussion: """
            A program finds only the items of its own application identifier, which is the name of its executable file unless it has \
            another one, and of the valet that it uses. Each line shows an application identifier or access group, the options of `valet` \
            that select its items, and their number. Where no options do, the line has "none" and names what finds the items: another program \
            stored them without a service, with an accessibility that no valet has, or as internet passwords. After an executable file was \
            renamed, `valet migrate --from-app` moves its items. Where keychaind keeps the keychain, the items of programs with an identity are \
            not shown.
            """
    )

    @OptionGroup
    var passcode: PasscodeOption

    func run() throws {
        let session = try CommandSession.forWholeKeychain(passcode: passcode.read())
        let survey = try Self.survey(session)
        let passwords = survey.itemCounts.map { place, count in
            let description = PlaceDescription(place)
            let withoutOptions = place.service.isEmpty ? "none: no service; \(description.alternative)" : "none: \(description.alternative)"
            return (owner: description.owner, options: description.options ?? "(\(withoutOptions))", count: count)
        }
        let internetPasswords = survey.internetPasswordCounts.map { group, count in
            (
                owner: String(decoding: group, as: UTF8.self), options: "(none: internet passwords; SecItemCopyMatching finds them)",
                count: count
            )
        }
        let rows = (passwords + internetPasswords).sorted { ($0.owner, $0.options) < ($1.owner, $1.options) }
        let header = ["APP OR GROUP", "OPTIONS", "ITEMS"]
        let table = [header] + rows.map { [ItemListing.escapingUnprintable($0.owner), $0.options, "\($0.count)"] }
        try StandardOutput.write(Data(ItemListing.aligned(table).utf8))
        if survey.unreadableCount > 0 {
            let items = survey.unreadableCount == 1 ? "1 item is" : "\(survey.unreadableCount) items are"
            WarningLog.add("\(items) not shown: locked, damaged, or only visible after authentication")
        } else if try session.perform({ try session.user.keptKeychain() }) != nil, try session.status().state != .unlocked {
            WarningLog.add("locked items are not shown; `valet unlock` unlocks them")
        }
    }

    /// Returns an empty survey if there is no keychain yet.
    private static func survey(_ session: CommandSession) throws(CommandFailure) -> ItemSurvey {
        do throws(CommandFailure) {
            return try session.perform { try session.user.survey() }
        } catch {
            guard error.status == .notFound else { throw error }
            return ItemSurvey()
        }
    }
}

extension ItemSurvey {
    /// The number of items in each place that has items of a person.
    var itemCounts: [ItemPlace: Int] {
        // The note of a renewal, which a program that was killed leaves behind, is no secret of a person.
        accounts.filter { !$0.key.service.hasPrefix(RenewalNotes.servicePrefix) }
            // A valet stores one item to find out whether it can store any.
            .mapValues { accounts in accounts.count { $0 != Canary.key } }
            .filter { $0.value > 0 }
    }
}
