// SPDX-License-Identifier: Apache-2.0

/// Text compared as the keychain compares it: byte by byte.
///
/// Swift takes "é" and "e" with a combining accent for equal, the keychain does not. What decides which item is meant
/// must follow the keychain.
struct ExactString: Hashable, Sendable {
    let value: String

    init(_ value: String) {
        self.value = value
    }

    static func == (left: ExactString, right: ExactString) -> Bool {
        left.value.utf8.elementsEqual(right.value.utf8)
    }

    func hash(into hasher: inout Hasher) {
        for byte in value.utf8 { hasher.combine(byte) }
    }
}
