// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A chart of a comparison of synchronization: a panel of bytes and one of times.
package struct SyncChart {
    private let comparison: SyncComparison

    package init(_ comparison: SyncComparison) {
        self.comparison = comparison
    }

    package var svg: String {
        BarChart(
            title: "What synchronizing two devices costs",
            heading: [
                "Medians, with a whisker to p99: less is better, each line is ten times the one before", comparison.machine.summary,
                comparison.date.formatted(.iso8601),
            ],
            legend: [("Valet", .ours), ("others", .peer)],
            panels: [panel(.bytes), panel(.microseconds)].filter { !$0.groups.isEmpty }
        ).svg
    }

    private func panel(_ unit: MeasuredUnit) -> BarChart.Panel {
        var groups: [ChartGroup] = []
        for figure in comparison.figures where figure.measure.unit == unit {
            let title = title(figure)
            guard !groups.contains(where: { $0.title == title }) else { continue }
            groups.append(ChartGroup(title: title, bars: comparison.figures.filter { self.title($0) == title }.map { Bar($0) }))
        }
        return BarChart.Panel(unit: unit, groups: groups)
    }

    private typealias Bar = ChartGroup.Bar

    private func title(_ figure: SyncFigure) -> String {
        let name = figure.measure.title.prefix(1).uppercased() + figure.measure.title.dropFirst()
        let changes = figure.changeCount > 1 ? ", \(Quantity.grouped(figure.changeCount)) changes" : ""
        return "\(name)\(changes), \(Quantity.grouped(figure.itemCount)) items"
    }
}

extension ChartGroup.Bar {
    init(_ figure: SyncFigure) {
        self.init(label: figure.contestant.rawValue, role: figure.contestant.role, median: figure.median, p99: figure.p99)
    }
}
