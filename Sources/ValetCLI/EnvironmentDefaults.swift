// SPDX-License-Identifier: Apache-2.0

/// Defaults of options from the environment.
///
/// An empty variable counts as absent.
struct EnvironmentDefaults {
    private let environment: [String: String]

    init(_ environment: [String: String]) {
        self.environment = environment
    }

    var identifier: String? { value("VALET_IDENTIFIER") }
    var group: String? { value("VALET_GROUP") }
    var application: String? { value("VALET_APP") }

    var accessibility: AccessibilityOption? {
        get throws(CommandFailure) {
            guard let text = value("VALET_ACCESSIBILITY") else { return nil }
            guard let option = AccessibilityOption(rawValue: text) else {
                throw CommandFailure(
                    .usage, "VALET_ACCESSIBILITY is not an accessibility class",
                    advice: "Set it to one of: \(AccessibilityOption.allCases.map(\.rawValue).joined(separator: ", "))."
                )
            }
            return option
        }
    }

    private func value(_ name: String) -> String? {
        environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}
