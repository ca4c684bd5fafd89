// SPDX-License-Identifier: Apache-2.0
import Testing
import Valet

/// A group that the entitlements of the keychain under test list.
func sharedGroup() throws -> SharedGroupIdentifier {
    try #require(SharedGroupIdentifier(appIDPrefix: "AppID12345", nonEmptyGroup: "Druidia"))
}

/// A group that they do not list.
func foreignGroup() throws -> SharedGroupIdentifier {
    try #require(SharedGroupIdentifier(appIDPrefix: "AppID12345", nonEmptyGroup: "Spaceball"))
}

/// What the program under test is entitled to.
///
/// The first group is where new items go that name none.
let testAccessGroups = ["AppID12345.Own", "AppID12345.Druidia", "group.Druidia"]
