// SPDX-License-Identifier: Apache-2.0

/// What two devices had after both changed one entry without knowing of each other.
package struct SyncAnswer: Codable, Equatable, Sendable {
    package enum Question: String, Codable, CaseIterable, Sendable {
        case editedInOneSecond
        case editedSecondsApart
        case deletedAndEdited
        /// Whether a change of another entry arrives while the conflict is not resolved.
        case otherEntryMeanwhile

        package var title: String {
            switch self {
            case .editedInOneSecond: "both edit one entry in the same second"
            case .editedSecondsApart: "both edit one entry, two seconds apart"
            case .deletedAndEdited: "one deletes an entry, the other edits it"
            case .otherEntryMeanwhile: "then a change of another entry"
            }
        }
    }

    package enum Outcome: String, Codable, Sendable {
        case bothKept
        case oneLostSilently
        case oneLostWithWarning
        case blocked
        case editVisible
        case editInRecycleBin
        case devicesDiffer
        case devicesDifferWithWarning
        case arrives

        package var title: String {
            switch self {
            case .bothKept: "both kept"
            case .oneLostSilently: "one lost, silently"
            case .oneLostWithWarning: "one lost, with a warning"
            case .blocked: "blocked until a person acts"
            case .editVisible: "the edit is kept, and visible"
            case .editInRecycleBin: "the edit is kept, in the recycle bin"
            case .devicesDiffer: "the devices differ from then on, silently"
            case .devicesDifferWithWarning: "the devices differ from then on, with a warning"
            case .arrives: "arrives"
            }
        }
    }

    package let contestant: Contestant
    package let question: Question
    package let outcome: Outcome

    package init(_ contestant: Contestant, _ question: Question, _ outcome: Outcome) {
        self.contestant = contestant
        self.question = question
        self.outcome = outcome
    }

    var place: [Int] {
        [Question.allCases.firstIndex(of: question) ?? 0, Contestant.allCases.firstIndex(of: contestant) ?? 0]
    }
}
