// SPDX-License-Identifier: Apache-2.0

import Testing

@Suite("Telling code from comments and literals")
struct SwiftScanTests {
    @Test(
        "Only code is left",
        arguments: [
            (#"let a = 1 // try! no"#, "let a = 1 "),
            (#"let a = "try!" + b"#, #"let a = "" + b"#),
            (#"let a = "\(try! b)" + c"#, #"let a = "" + c"#),
            (#"let a = "\"try!" + b"#, #"let a = "" + b"#),
            (##"let a = #"a " try!"# + b"##, #"let a = "" + b"#),
            (#"a /* try! /* as! */ x */ b"#, "a  b"),
            (#"let a = "http://b" + c"#, #"let a = "" + c"#),
        ])
    func codeOfALine(_ source: String, _ expected: String) {
        #expect(SwiftScan(source).code == [expected])
    }

    @Test("A literal of several lines is one literal")
    func multilineLiteral() {
        let scan = SwiftScan("let a = \"\"\"\n  try! \"b\" // c\n  \"\"\" + d")
        #expect(scan.code == ["let a = \"", "", "\" + d"])
        #expect(scan.comments == ["", "", ""])
    }

    @Test("Comments keep their markers")
    func comments() {
        #expect(SwiftScan("/// A\nlet a = 1 // b").comments == ["/// A", "// b"])
    }
}
