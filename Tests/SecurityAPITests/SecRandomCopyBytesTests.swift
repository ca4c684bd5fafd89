// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import SecurityAPI

// The pointers below point into variables that are large enough and live longer than the call.

@Suite("SecRandomCopyBytes")
struct SecRandomCopyBytesTests {
    @Test("It fills exactly the bytes it was asked for", arguments: [1, 7, 8, 9, 16, 32, 1000])
    func count(byteCount: Int) {
        // A byte that is zero every time was not written: by chance that happens once in 2^160.
        var touched = [UInt8](repeating: 0, count: byteCount)
        for _ in 0..<20 {
            var bytes = [UInt8](repeating: 0, count: byteCount + 8)
            #expect(unsafe SecRandomCopyBytes(kSecRandomDefault, byteCount, &bytes) == errSecSuccess)
            #expect(bytes.suffix(8).allSatisfy { $0 == 0 })
            for position in 0..<byteCount { touched[position] |= bytes[position] }
        }
        #expect(touched.allSatisfy { $0 != 0 })
    }

    @Test("Two calls differ")
    func twice() {
        var first = [UInt8](repeating: 0, count: 32)
        var second = first
        #expect(unsafe SecRandomCopyBytes(kSecRandomDefault, 32, &first) == errSecSuccess)
        #expect(unsafe SecRandomCopyBytes(nil, 32, &second) == errSecSuccess)
        #expect(first != second)
    }

    @Test("Nothing is asked for, nothing written")
    func none() {
        var byte: UInt8 = 7
        #expect(unsafe SecRandomCopyBytes(kSecRandomDefault, 0, &byte) == errSecSuccess)
        #expect(byte == 7)
    }

    @Test("A negative count is refused, and nothing is written", arguments: [-1, Int.min])
    func negative(byteCount: Int) {
        var byte: UInt8 = 7
        #expect(unsafe SecRandomCopyBytes(kSecRandomDefault, byteCount, &byte) == errSecParam)
        #expect(byte == 7)
    }
}
