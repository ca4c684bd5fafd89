// SPDX-License-Identifier: Apache-2.0
internal import Foundation

extension String {
    /// The text that `data` is in UTF-8, byte for byte; nil if it is none.
    ///
    /// `String(data:encoding:)` may drop a byte order mark, and then a value would not come back as it was stored.
    init?(exactUTF8 data: Data) {
        let decoded = String(decoding: data, as: UTF8.self)
        // Decoding replaces what is not UTF-8, so the bytes tell.
        guard decoded.utf8.elementsEqual(data) else { return nil }
        self = decoded
    }
}
