// SPDX-License-Identifier: Apache-2.0

/// Lines of text with columns as wide as their longest cell.
struct TextColumns {
    /// The alignment of each column.
    let endsAligned: [Bool]
    private(set) var lines: [[String]] = []

    init(_ endsAligned: [Bool]) {
        self.endsAligned = endsAligned
    }

    mutating func append(_ cells: [String]) {
        lines.append(cells)
    }

    var text: String {
        let widths = endsAligned.indices.map { column in lines.map { $0.count > column ? $0[column].count : 0 }.max() ?? 0 }
        return lines.map { cells in
            let line = cells.enumerated().map { column, cell in
                let space = String(repeating: " ", count: widths[column] - cell.count)
                return endsAligned[column] ? space + cell : cell + space
            }.joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed())
        }.joined(separator: "\n")
    }
}
