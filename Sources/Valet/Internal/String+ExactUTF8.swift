// SPDX-License-Identifier: Apache-2.0
internal import Foundation

extension String {
    /// The text that `data` is in UTF-8, byte for byte; nil if it is none.
    init?(exactUTF8 data: Data) {
        guard let text = String(data: data, encoding: .utf8) else { return nil }
        // Foundation drops a byte order mark, and then a value would not come back as it was stored.
        self = text.utf8.count == data.count ? text : String(decoding: data, as: UTF8.self)
    }
}
