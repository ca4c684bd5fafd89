// SPDX-License-Identifier: Apache-2.0
import Testing
import Valet

func identifier(_ name: String) throws -> Identifier {
    try #require(Identifier(nonEmpty: name))
}

/// A group that the entitlements of the keychain under test list.
func sharedGroup() throws -> SharedGroupIdentifier {
    try #require(SharedGroupIdentifier(appIDPrefix: "AppID12345", nonEmptyGroup: "Druidia"))
}

/// A group that they do not list.
func foreignGroup() throws -> SharedGroupIdentifier {
    try #require(SharedGroupIdentifier(appIDPrefix: "AppID12345", nonEmptyGroup: "Spaceball"))
}

func valet(_ name: String = "Druidia", _ accessibility: Accessibility = .whenUnlocked) throws -> Valet {
    Valet.valet(with: try identifier(name), accessibility: accessibility)
}

func explicitValet(_ name: String = "Druidia", _ accessibility: Accessibility) throws -> Valet {
    Valet.valet(withExplicitlySet: try identifier(name), accessibility: accessibility)
}

/// What the program under test is entitled to.
///
/// The first group is where new items go that name none.
let testAccessGroups = ["AppID12345.Own", "AppID12345.Druidia", "group.Druidia"]
