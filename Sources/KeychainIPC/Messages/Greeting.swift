// SPDX-License-Identifier: Apache-2.0
package import KeychainCore

/// The first message of keychaind on a connection.
package struct Hello: Equatable, Sendable {
    package let versions: ClosedRange<UInt8>
    package let nonce: [UInt8]

    package init(versions: ClosedRange<UInt8> = WireProtocol.version...WireProtocol.version, nonce: [UInt8]) {
        self.versions = versions
        self.nonce = nonce
    }

    package var message: Message { Message(.hello, body: [versions.lowerBound, versions.upperBound] + nonce) }

    package init(parsing message: Message) throws(MalformedMessage) {
        guard message.kind == .hello, message.operation == 0, message.body.count == 2 + WireProtocol.nonceByteCount,
            message.body[0] <= message.body[1]
        else { throw MalformedMessage() }
        self.init(versions: message.body[0]...message.body[1], nonce: Array(message.body.dropFirst(2)))
    }
}

/// The first message of a program on a connection: what it says about itself.
///
/// None of it counts for more than the order of names: keychaind decides by what the kernel says.
package struct Identification: Equatable, Sendable {
    package let nonce: [UInt8]
    package let applicationIdentifier: String
    /// The access groups that the program declares, in its order.
    package let accessGroups: [String]
    package let isAppClip: Bool
    /// The store that the signpost in the place of the program's keychain names.
    ///
    /// Nil without a signpost: to adopt a keychain, or to release it.
    package let storeID: StoreID?

    package init(nonce: [UInt8], applicationIdentifier: String, accessGroups: [String], isAppClip: Bool, storeID: StoreID? = nil) {
        self.nonce = nonce
        self.applicationIdentifier = applicationIdentifier
        self.accessGroups = accessGroups
        self.isAppClip = isAppClip
        self.storeID = storeID
    }

    package init(nonce: [UInt8], _ entitlements: Entitlements, storeID: StoreID? = nil) {
        self.init(
            nonce: nonce, applicationIdentifier: entitlements.applicationIdentifier, accessGroups: entitlements.accessGroups,
            isAppClip: entitlements.isAppClip, storeID: storeID)
    }

    package var message: Message {
        var writer = MessageWriter()
        for byte in nonce { writer.write(byte) }
        writer.write(applicationIdentifier)
        writer.write(UInt32(accessGroups.count))
        for group in accessGroups { writer.write(group) }
        writer.write(isAppClip)
        writer.write(ifPresent: storeID) { writer, id in writer.write(id) }
        return Message(.identify, body: writer.bytes)
    }

    package init(parsing message: Message) throws(MalformedMessage) {
        guard message.kind == .identify, message.operation == 0 else { throw MalformedMessage() }
        var reader = MessageReader(message.body)
        var nonce: [UInt8] = []
        for _ in 0..<WireProtocol.nonceByteCount { nonce.append(try reader.readByte()) }
        let identifier = try reader.readText()
        let groups = try reader.readList { reader throws(MalformedMessage) in try reader.readText() }
        guard groups.count <= WireProtocol.largestGroupCount else { throw MalformedMessage() }
        let isAppClip = try reader.readFlag()
        let storeID = try reader.readIfPresent { reader throws(MalformedMessage) in try reader.readIdentifier() }
        try reader.finish()
        self.init(nonce: nonce, applicationIdentifier: identifier, accessGroups: groups, isAppClip: isAppClip, storeID: storeID)
    }
}
