// SPDX-License-Identifier: Apache-2.0

/// What a call says about asking the person who has to release an item.
struct AskingOptions {
    /// What goes into the dictionary of the call.
    let entries: [String: Any]

    /// Says nothing: for items that need nobody, and to be asked in the keychain's own words.
    static var unsaid: AskingOptions { AskingOptions(entries: [:]) }

    /// Nobody is asked: the call answers `errSecInteractionNotAllowed` where somebody would have to be.
    static var never: AskingOptions { AskingOptions(entries: PlatformRules.withoutAsking()) }

    /// The person is asked in these words, and one answer serves every call that is given the same options.
    static func once(_ prompt: String) -> AskingOptions { AskingOptions(entries: PlatformRules.asking(prompt)) }
}
