// SPDX-License-Identifier: Apache-2.0
internal import Glibc
internal import KeychainCore
internal import KeychainSystem

@testable internal import KeychainEngine

/// Answers of a pinentry program: whatever it writes, in whatever pieces.
struct PinentryTarget: FuzzTarget {
    static let name = "pinentry"

    static func seeds() -> [[UInt8]] {
        let answers = [
            "OK Pleased to meet you\nOK\nD 1%32345\nOK\n", "ERR 83886179 Operation cancelled <Pinentry>\n",
            "S PASSWORD_FROM_CACHE\n# what\nS PIN_REPEATED\nD a%25%0Ab\r\nD c\nOK\r\n", "INQUIRE QUALITY abc\nINQUIRE OTHER\nOK closing\n",
            "D \nOK\nD %4", String(repeating: "x", count: 1_001), "D " + String(repeating: "%41", count: 320) + "\nOK\n",
        ]
        return answers.map { [1, 5, 200] + Array($0.utf8) } + answers.map { [0] + Array($0.utf8) }
    }

    func run(_ input: [UInt8]) throws {
        var reader = InputReader(input)
        let pieceCounts = (0..<reader.choice(below: 16)).map { _ in Int(reader.byte()) + 1 }
        let bytes = Array(reader.rest)
        let whole = try Self.answers(to: bytes, inPieces: [])
        let pieces = try Self.answers(to: bytes, inPieces: pieceCounts)
        expect(whole == pieces, "what is read depends on the pieces it came in: \(whole), \(pieces)")
    }

    /// All answers up to the first refusal, and what was typed with each.
    private static func answers(to bytes: [UInt8], inPieces pieceCounts: [Int]) throws -> [String] {
        let server = try ScriptedServer(bytes, pieceCounts: pieceCounts)
        var connection = try AssuanConnection(server)
        var answers: [String] = []
        while true {
            do throws(PresenceRefusal) {
                let answer = try connection.answer(until: .never)
                let data = (0..<connection.data.count).map { connection.data[$0] }
                expect(data.count <= connection.data.capacity, "more is kept than there is room for")
                answers.append("\(answer) \(connection.isRepeated) \(data) \(server.requestCount)")
            } catch {
                answers.append("\(error) \(server.requestCount)")
                return answers
            }
        }
    }
}

/// A program that writes given bytes in given pieces, each when it is waited for, and ends.
private final class ScriptedServer: AssuanServer {
    let output: FileDescriptor
    private let input: Int32
    private var rest: ArraySlice<UInt8>
    private var pieceCounts: ArraySlice<Int>
    private(set) var requestCount = 0

    init(_ bytes: [UInt8], pieceCounts: [Int]) throws {
        var ends: [Int32] = [-1, -1]
        // Two descriptors, as many as there is room for.
        guard unsafe pipe(&ends) == 0, fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 else { throw FixedKeys.Impossible() }
        (output, input) = (FileDescriptor(rawValue: ends[0]), ends[1])
        rest = bytes[...]
        self.pieceCounts = pieceCounts[...]
    }

    deinit {
        close(output.rawValue)
        close(input)
    }

    var hasEnded: Bool { rest.isEmpty }

    func send(_ line: [UInt8]) {
        expect(line.last == UInt8(ascii: "\n") && line.count <= 1_000, "a request is no line")
        requestCount += 1
    }

    func wait(until deadline: Deadline) -> PipedProcess.Wait {
        // No more at once than a pipe takes.
        let piece = Array(rest.prefix(pieceCounts.popFirst() ?? 4_096))
        rest = rest.dropFirst(piece.count)
        // As many bytes as the piece has.
        _ = unsafe write(input, piece, piece.count)
        return .ready
    }
}
