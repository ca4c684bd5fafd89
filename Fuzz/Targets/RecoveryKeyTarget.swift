// SPDX-License-Identifier: Apache-2.0
internal import KeychainCore

@testable internal import Keybag

/// Recovery keys as people type them.
struct RecoveryKeyTarget: FuzzTarget {
    static let name = "recovery-key"

    static func seeds() throws -> [[UInt8]] {
        let text = try bytes(of: FixedKeys.recoveryKey().text())
        let small = text.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 + 32 : $0 }
        return [text, small, text.map { $0 == UInt8(ascii: "-") ? UInt8(ascii: " ") : $0 }, text.filter { $0 != UInt8(ascii: "-") }]
    }

    private static func bytes(of secret: consuming SecretBytes) -> [UInt8] {
        // Copied within the closure.
        unsafe secret.withBytes { unsafe Array($0) }
    }

    func run(_ input: [UInt8]) throws {
        // Read within the closure.
        let key = unsafe input.withUnsafeBytes { bytes in
            attempt(failingWith: .parameter) { () throws(KeychainFailure) in try unsafe RecoveryKey(typed: bytes) }
        }
        guard let key else { return }
        let typed = input.filter { ![UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "-")].contains($0) }.map(Self.canonical)
        let text = Self.bytes(of: try key.text())
        expect(text.filter { $0 != UInt8(ascii: "-") } == typed, "a key is read as another one")
    }

    /// The equivalent letter.
    private static func canonical(_ letter: UInt8) -> UInt8 {
        let upper = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(letter) ? letter - 32 : letter
        return switch upper {
        case UInt8(ascii: "O"): UInt8(ascii: "0")
        case UInt8(ascii: "I"), UInt8(ascii: "L"): UInt8(ascii: "1")
        default: upper
        }
    }
}
