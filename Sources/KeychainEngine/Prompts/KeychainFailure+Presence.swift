// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

extension KeychainFailure {
    /// What a call answers that needed a person and got none.
    ///
    /// Only a person who says no is `.userCanceled`. Nobody there, nobody in time and nothing that could ask are all
    /// `.interactionNotAllowed`: the question did not reach anybody, and asking again later may help.
    package init(_ refusal: PresenceRefusal, file: StaticString = #fileID, line: UInt = #line) {
        switch refusal {
        case .canceled: self.init(.userCanceled, "the person canceled", file: file, line: line)
        case .timedOut: self.init(.interactionNotAllowed, "nobody answered in time", refusal: .timedOut, file: file, line: line)
        case .nobodyToAsk(let why):
            self.init(.interactionNotAllowed, "there is nobody to ask: \(why)", refusal: .notInteractive, file: file, line: line)
        case .failed(let why):
            self.init(.interactionNotAllowed, "nobody could be asked: \(why)", refusal: .notInteractive, file: file, line: line)
        }
    }
}
