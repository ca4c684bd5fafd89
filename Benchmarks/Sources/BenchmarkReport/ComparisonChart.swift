// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A chart of a comparison: a bar to the median and a whisker to p99, on a logarithmic scale.
package struct ComparisonChart {
    private static let (width, labelWidth, valueWidth) = (880.0, 190.0, 110.0)
    private static let (barHeight, barDistance, groupDistance) = (14.0, 20.0, 34.0)
    private static let (top, bottom) = (104.0, 34.0)

    private let comparison: Comparison
    private let groups: [ChartGroup]

    package init(_ comparison: Comparison) {
        self.comparison = comparison
        groups = ChartGroup.all(comparison)
    }

    package var svg: String {
        let bars = groups.flatMap(\.bars)
        let scale = LogarithmicScale(
            bars.flatMap { [$0.latency.medianMicroseconds, $0.latency.p99Microseconds] }, start: Self.labelWidth,
            length: Self.width - Self.labelWidth - Self.valueWidth)
        let height = Self.top + groups.map { Self.groupDistance + Double($0.bars.count) * Self.barDistance }.reduce(0, +) + Self.bottom
        var children = [SVGElement("title", text: "How long operations take"), SVGElement("desc", text: description)] + heading
        if let scale {
            children += axis(scale, bottom: height - Self.bottom) + content(scale)
        }
        let document = SVGElement(
            "svg",
            [
                "xmlns": "http://www.w3.org/2000/svg", "viewBox": "0 0 \(number(Self.width)) \(number(height))",
                "width": number(Self.width),
                "height": number(height), "role": "img",
                "font-family": "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif",
                "font-size": "13", "fill": ChartPalette.text,
            ], children: children)
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + document.rendered()
    }

    private var description: String {
        groups.map { group in
            let values = group.bars.map { "\($0.label) \(Quantity.time(microseconds: $0.latency.medianMicroseconds))" }
            return "\(group.title): \(values.joined(separator: ", "))."
        }.joined(separator: " ")
    }

    private var heading: [SVGElement] {
        var elements = [
            text(
                "Medians, with a whisker to p99: less is better, each line is ten times the one before", x: 0, y: 18, size: 16, isBold: true
            ),
            text(comparison.machine.summary, x: 0, y: 38),
            text("\(comparison.date.formatted(.iso8601)), 1,000 items unless it says otherwise", x: 0, y: 56),
        ]
        var x = 0.0
        for (name, role) in [("Valet", Contestant.Role.ours), ("limits", .limit), ("others", .peer)] {
            elements.append(rectangle(x: x, y: 68, width: 14, height: 14, color: ChartPalette.bar(role)))
            elements.append(text(name, x: x + 20, y: 80))
            x += 90
        }
        return elements
    }

    private func axis(_ scale: LogarithmicScale, bottom: Double) -> [SVGElement] {
        scale.marks.flatMap { mark in
            let x = scale.position(mark)
            return [
                line(from: (x, Self.top), to: (x, bottom), color: ChartPalette.line, width: 1, opacity: "0.3"),
                text(Quantity.decade(microseconds: mark), x: x, y: bottom + 18, anchor: "middle"),
            ]
        }
    }

    private func content(_ scale: LogarithmicScale) -> [SVGElement] {
        var elements: [SVGElement] = []
        var y = Self.top
        for group in groups {
            elements.append(text(group.title, x: 0, y: y + 22, isBold: true))
            y += Self.groupDistance
            for bar in group.bars {
                elements += content(bar, y: y, scale)
                y += Self.barDistance
            }
        }
        return elements
    }

    private func content(_ bar: ChartGroup.Bar, y: Double, _ scale: LogarithmicScale) -> [SVGElement] {
        let (median, p99) = (scale.position(bar.latency.medianMicroseconds), scale.position(bar.latency.p99Microseconds))
        let middle = y + Self.barHeight / 2
        return [
            text(bar.label, x: Self.labelWidth - 8, y: middle + 4.5, anchor: "end"),
            rectangle(
                x: scale.start, y: y, width: max(1, median - scale.start), height: Self.barHeight, color: ChartPalette.bar(bar.role)),
            line(from: (median, middle), to: (p99, middle), color: ChartPalette.whisker, width: 1.5),
            line(from: (p99, middle - 4), to: (p99, middle + 4), color: ChartPalette.whisker, width: 1.5),
            text(Quantity.time(microseconds: bar.latency.medianMicroseconds), x: max(median, p99) + 6, y: middle + 4.5),
        ]
    }

    private func text(
        _ string: String, x: Double, y: Double, size: Double = 13, isBold: Bool = false, anchor: String = "start"
    ) -> SVGElement {
        SVGElement(
            "text",
            [
                "x": number(x), "y": number(y), "font-size": number(size), "font-weight": isBold ? "600" : "400", "text-anchor": anchor,
            ], text: string)
    }

    private func rectangle(x: Double, y: Double, width: Double, height: Double, color: String) -> SVGElement {
        SVGElement(
            "rect",
            ["x": number(x), "y": number(y), "width": number(width), "height": number(height), "rx": "2", "fill": color])
    }

    private func line(
        from start: (x: Double, y: Double), to end: (x: Double, y: Double), color: String, width: Double, opacity: String = "1"
    ) -> SVGElement {
        SVGElement(
            "line",
            [
                "x1": number(start.x), "y1": number(start.y), "x2": number(end.x), "y2": number(end.y), "stroke": color,
                "stroke-width": number(width), "stroke-opacity": opacity,
            ])
    }

    private func number(_ value: Double) -> String {
        let text = String(format: "%.1f", value)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}
