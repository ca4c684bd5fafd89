// SPDX-License-Identifier: Apache-2.0

/// An element of an SVG document.
struct SVGElement {
    let name: String
    var attributes: [(name: String, value: String)] = []
    var text = ""
    var children: [SVGElement] = []

    init(_ name: String, _ attributes: KeyValuePairs<String, String> = [:], text: String = "", children: [SVGElement] = []) {
        self.name = name
        self.attributes = attributes.map { (name: $0.key, value: $0.value) }
        self.text = text
        self.children = children
    }

    /// The text of the element in a document, one line per element.
    func rendered(indentation: String = "") -> String {
        let start = indentation + "<" + name + attributes.map { " \($0.name)=\"\(Self.escaped($0.value))\"" }.joined()
        if children.isEmpty { return text.isEmpty ? start + "/>\n" : start + ">" + Self.escaped(text) + "</\(name)>\n" }
        return start + ">\n" + children.map { $0.rendered(indentation: indentation + "  ") }.joined() + indentation + "</\(name)>\n"
    }

    /// Omits characters that XML does not allow.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\u{0}"..<"\u{20}", "\u{fffe}", "\u{ffff}": result += " "
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
