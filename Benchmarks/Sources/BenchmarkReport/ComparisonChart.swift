// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A chart of a comparison.
package struct ComparisonChart {
    private let comparison: Comparison

    package init(_ comparison: Comparison) {
        self.comparison = comparison
    }

    package var svg: String {
        BarChart(
            title: "How long operations take",
            heading: [
                "Medians, with a whisker to p99: less is better, each line is ten times the one before", comparison.machine.summary,
                "\(comparison.date.formatted(.iso8601)), 1,000 items unless it says otherwise",
            ],
            legend: [("Valet", .ours), ("limits", .limit), ("others", .peer)],
            panels: [BarChart.Panel(unit: .microseconds, groups: ChartGroup.all(comparison))]
        ).svg
    }
}
