// SPDX-License-Identifier: Apache-2.0
import Testing
import Valet

func identifier(_ name: String) throws -> Identifier {
    try #require(Identifier(nonEmpty: name))
}

func valet(_ name: String = "Druidia", _ accessibility: Accessibility = .whenUnlocked) throws -> Valet {
    Valet.valet(with: try identifier(name), accessibility: accessibility)
}

func explicitValet(_ name: String = "Druidia", _ accessibility: Accessibility) throws -> Valet {
    Valet.valet(withExplicitlySet: try identifier(name), accessibility: accessibility)
}
