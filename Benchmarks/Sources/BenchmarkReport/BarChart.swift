// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A chart of groups of bars: a bar to the median and a whisker to p99, on a logarithmic scale.
struct BarChart {
    /// Groups with a common scale.
    struct Panel {
        let unit: MeasuredUnit
        let groups: [ChartGroup]
    }

    private static let (width, labelWidth, valueWidth) = (880.0, 190.0, 110.0)
    private static let (barHeight, barDistance, groupDistance) = (14.0, 20.0, 34.0)
    private static let (top, bottom) = (104.0, 34.0)

    /// For programs that read the picture aloud.
    let title: String
    /// The lines above the bars; the first one is the largest.
    let heading: [String]
    let legend: [(String, Contestant.Role)]
    let panels: [Panel]

    var svg: String {
        var children =
            [SVGElement("title", text: title), SVGElement("desc", text: panels.map(description).joined(separator: " "))] + headingElements
        var top = Self.top
        for panel in panels {
            let bars = panel.groups.flatMap(\.bars)
            let end = top + panel.groups.map { Self.groupDistance + Double($0.bars.count) * Self.barDistance }.reduce(0, +)
            let scale = LogarithmicScale(
                bars.flatMap { [$0.median, $0.p99] }, start: Self.labelWidth, length: Self.width - Self.labelWidth - Self.valueWidth)
            if let scale { children += axis(scale, panel.unit, top: top, bottom: end) + content(panel, top: top, scale) }
            top = end + Self.bottom
        }
        let document = SVGElement(
            "svg",
            [
                "xmlns": "http://www.w3.org/2000/svg", "viewBox": "0 0 \(number(Self.width)) \(number(top))",
                "width": number(Self.width),
                "height": number(top), "role": "img",
                "font-family": "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif",
                "font-size": "13", "fill": ChartPalette.text,
            ], children: children)
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + document.rendered()
    }

    private func description(_ panel: Panel) -> String {
        panel.groups.map { group in
            let values = group.bars.map { "\($0.label) \(panel.unit.text($0.median))" }
            return "\(group.title): \(values.joined(separator: ", "))."
        }.joined(separator: " ")
    }

    private var headingElements: [SVGElement] {
        var elements: [SVGElement] = []
        for (index, line) in heading.enumerated() {
            elements.append(
                index == 0 ? text(line, x: 0, y: 18, size: 16, isBold: true) : text(line, x: 0, y: 20 + Double(index) * 18))
        }
        var x = 0.0
        for (name, role) in legend {
            elements.append(rectangle(x: x, y: 68, width: 14, height: 14, color: ChartPalette.bar(role)))
            elements.append(text(name, x: x + 20, y: 80))
            x += 90
        }
        return elements
    }

    private func axis(_ scale: LogarithmicScale, _ unit: MeasuredUnit, top: Double, bottom: Double) -> [SVGElement] {
        scale.marks.flatMap { mark in
            let x = scale.position(mark)
            return [
                line(from: (x, top), to: (x, bottom), color: ChartPalette.line, width: 1, opacity: "0.3"),
                text(unit.decade(mark), x: x, y: bottom + 18, anchor: "middle"),
            ]
        }
    }

    private func content(_ panel: Panel, top: Double, _ scale: LogarithmicScale) -> [SVGElement] {
        var elements: [SVGElement] = []
        var y = top
        for group in panel.groups {
            elements.append(text(group.title, x: 0, y: y + 22, isBold: true))
            y += Self.groupDistance
            for bar in group.bars {
                elements += content(bar, panel.unit, y: y, scale)
                y += Self.barDistance
            }
        }
        return elements
    }

    private func content(_ bar: ChartGroup.Bar, _ unit: MeasuredUnit, y: Double, _ scale: LogarithmicScale) -> [SVGElement] {
        let (median, p99) = (scale.position(bar.median), scale.position(bar.p99))
        let middle = y + Self.barHeight / 2
        return [
            text(bar.label, x: Self.labelWidth - 8, y: middle + 4.5, anchor: "end"),
            rectangle(
                x: scale.start, y: y, width: max(1, median - scale.start), height: Self.barHeight, color: ChartPalette.bar(bar.role)),
            line(from: (median, middle), to: (p99, middle), color: ChartPalette.whisker, width: 1.5),
            line(from: (p99, middle - 4), to: (p99, middle + 4), color: ChartPalette.whisker, width: 1.5),
            text(unit.text(bar.median), x: max(median, p99) + 6, y: middle + 4.5),
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
