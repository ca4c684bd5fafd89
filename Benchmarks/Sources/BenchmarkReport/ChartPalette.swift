// SPDX-License-Identifier: Apache-2.0

/// Colors that are legible on white and on black: the chart has no background of its own.
enum ChartPalette {
    static let text = "#757d86"
    static let line = "#8b949e"
    static let whisker = "#757d86"

    static func bar(_ role: Contestant.Role) -> String {
        switch role {
        case .limit: "#8b949e"
        case .ours: "#2f81f7"
        case .peer: "#d4742c"
        }
    }
}
