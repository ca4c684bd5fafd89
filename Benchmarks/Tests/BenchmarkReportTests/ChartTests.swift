// SPDX-License-Identifier: Apache-2.0
import Foundation
import FoundationXML
import Testing

@testable import BenchmarkReport

struct ChartTests {
    static let charts = [ComparisonChart(ComparisonFixture.comparison()).svg, SyncChart(SyncFixture.comparison()).svg]
    private let svg = charts[0]

    @Test("The chart is well-formed XML for any machine name", arguments: charts)
    func wellFormed(svg: String) throws {
        let document = Parsed(svg)
        #expect(document.isWellFormed)
        #expect(document.elements.first?.name == "svg")
        #expect(document.text.contains("Processor <\"Skroob\"> &   Co"))
    }

    @Test(
        "The XML parser rejects invalid XML",
        arguments: [("</svg>", ""), ("</text>", "</txt>"), ("&amp;", "&"), ("</title>", "</title><rect>"), ("fill=\"", "fill=")])
    func malformed(sound: String, broken: String) {
        let document = svg.replacingOccurrences(of: sound, with: broken)
        #expect(document != svg)
        #expect(!Parsed(document).isWellFormed)
    }

    @Test("The chart contains no links and no scripts")
    func standsAlone() {
        let document = Parsed(svg)
        let allowed: Set = ["svg", "title", "desc", "text", "rect", "line"]
        #expect(Set(document.elements.map(\.name)).isSubset(of: allowed))
        #expect(!document.elements.contains { $0.attributes.keys.contains { $0.hasSuffix("href") || $0.hasPrefix("on") } })
        #expect(!svg.contains("url("))
    }

    @Test("Bytes and times have scales of their own")
    func panels() {
        let text = Parsed(Self.charts[1]).text
        #expect(text.contains("700 B"))
        #expect(text.contains("2.00 s"))
        #expect(text.contains("Catching up with missed changes, 10,000 changes, 1,000 items"))
        for mark in ["100 B", "1 KB", "1 s", "10 s"] { #expect(text.contains(mark)) }
    }

    @Test("All bars, whiskers, and labels are within the picture", arguments: charts)
    func insideThePicture(svg: String) throws {
        let document = Parsed(svg)
        let width = try #require(document.elements.first?.attributes["width"].flatMap(Double.init))
        for element in document.elements {
            let right = ["x", "x1", "x2"].compactMap { element.attributes[$0].flatMap(Double.init) }.max() ?? 0
            let extent = element.name == "rect" ? element.attributes["width"].flatMap(Double.init) ?? 0 : 0
            #expect(right + extent <= width)
        }
    }

    @Test("The bars have a logarithmic scale")
    func scale() throws {
        let scale = try #require(LogarithmicScale([2, 900], start: 100, length: 300))
        #expect(scale.marks == [1, 10, 100, 1_000])
        #expect(scale.position(1) == 100)
        #expect(abs(scale.position(10) - 200) < 1e-9)
        #expect(abs(scale.position(1_000) - 400) < 1e-9)
        #expect(LogarithmicScale([0], start: 0, length: 1) == nil)
        #expect(LogarithmicScale([10], start: 0, length: 1)?.marks == [10, 100])
    }

    @Test("Text is readable on a white and on a near-black background")
    func contrast() throws {
        for background in ["#ffffff", "#0d1117"] {
            #expect(try Contrast.ratio(ChartPalette.text, background) >= 4)
            for role in [Contestant.Role.limit, .ours, .peer] {
                // What the accessibility guidelines ask of shapes.
                #expect(try Contrast.ratio(ChartPalette.bar(role), background) >= 3)
            }
        }
    }
}

/// What a parser finds in a document.
private final class Parsed: NSObject, XMLParserDelegate {
    struct Element {
        let name: String
        let attributes: [String: String]
    }

    private(set) var isWellFormed = false
    private(set) var elements: [Element] = []
    private(set) var text = ""
    private var depth = 0

    init(_ document: String) {
        super.init()
        let parser = XMLParser(data: Data(document.utf8))
        parser.delegate = self
        // It does not mind by itself that the end of the document is missing.
        isWellFormed = parser.parse() && depth == 0
    }

    func parser(
        _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String] = [:]
    ) {
        depth += 1
        elements.append(Element(name: name, attributes: attributes))
    }

    func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) { depth -= 1 }

    func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }
}

/// The contrast of two colours, as the Web Content Accessibility Guidelines 2.1 define it.
private enum Contrast {
    static func ratio(_ first: String, _ second: String) throws -> Double {
        let (a, b) = (try luminance(first), try luminance(second))
        return (max(a, b) + 0.05) / (min(a, b) + 0.05)
    }

    private static func luminance(_ color: String) throws -> Double {
        let number = try #require(UInt32(color.dropFirst(), radix: 16))
        let channels = [16, 8, 0].map { shift in
            let value = Double(number >> UInt32(shift) & 0xff) / 255
            return value <= 0.03928 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
        }
        return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]
    }
}
