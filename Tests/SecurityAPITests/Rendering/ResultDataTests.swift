// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import SecurityAPI

@Suite("Data as a caller receives it")
struct ResultDataTests {
    @Test("It casts to Data, byte for byte", arguments: [0, 1, 2, 14, 15, 16, 40, 1000, 1 << 20])
    func casts(byteCount: Int) {
        let data = Data((0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let object: CFTypeRef = ResultData.object(data)
        #expect(object as? Data == data)
        #expect((object as? NSData)?.length == byteCount)
        #expect((object as? NSData).map { Data(referencing: $0) } == data)
    }

    @Test("It is like any other NSData")
    func equality() throws {
        let data = Data("open sesame".utf8)
        let object = ResultData.object(data)
        let plain = NSData(data: data)
        #expect(object.isEqual(plain))
        #expect(plain.isEqual(object))
        #expect(object.isEqual(to: data))
        #expect(object.hash == plain.hash)
        #expect(object.description == plain.description)
        #expect(object.base64EncodedString() == data.base64EncodedString())
        #expect(object.subdata(with: NSRange(location: 5, length: 3)) == Data("ses".utf8))
        #expect(object.copy() as? Data == data)
        #expect((object.mutableCopy() as? NSMutableData)?.length == data.count)
        #expect(String(data: try #require(object as AnyObject as? Data), encoding: .utf8) == "open sesame")
        #expect(CFGetTypeID(object) == CFDataGetTypeID())
    }

    @Test("It comes out of a dictionary as Data")
    func nested() {
        let data = Data("open sesame".utf8)
        let dictionary: CFTypeRef = ["key": ResultData.object(data)] as NSDictionary
        #expect((dictionary as? [String: Any])?["key"] as? Data == data)
        #expect((dictionary as? [String: AnyHashable])?["key"] as? Data == data)
        #expect((dictionary as? NSDictionary)?["key"] as? Data == data)
    }

    @Test("It is a slice's own bytes")
    func slice() {
        #expect(ResultData.object(Data([1, 2, 3, 4]).dropFirst(2)) as CFTypeRef as? Data == Data([3, 4]))
    }
}
