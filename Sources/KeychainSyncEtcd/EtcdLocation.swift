// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
internal import Foundation
internal import KeychainSync

/// The parts of the location of a storage in etcd; `EtcdStorage` describes its form.
struct EtcdLocation: Hashable, Sendable {
    /// A member of the cluster.
    struct Endpoint: Hashable, Sendable, CustomStringConvertible {
        let host: String
        let port: Int

        let kind: Kind

        /// What the host is; gRPC ends the process if an address is not one.
        enum Kind { case name, ipv4, ipv6 }

        /// Nil if the host is neither a name nor an address.
        ///
        /// IPv6 addresses stand in brackets in a location, here without them.
        init?(host: String, port: Int, isBracketed: Bool) {
            if isBracketed {
                guard host.isAddress(AF_INET6) else { return nil }
                kind = .ipv6
            } else if host.allSatisfy({ $0.isNumber || $0 == "." }) {
                // Others of digits and dots are addresses that are written in an unusual way, such as 127.1.
                guard host.isAddress(AF_INET) else { return nil }
                kind = .ipv4
            } else {
                guard host.utf8.allSatisfy({ Self.nameCharacters.contains($0) }) else { return nil }
                kind = .name
            }
            (self.host, self.port) = (host, port)
        }

        private static let nameCharacters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._".utf8)

        var description: String { (kind == .ipv6 ? "[\(host)]" : host) + ":\(port)" }
    }

    private(set) var endpoints: [Endpoint] = []
    /// The prefix of the keys, without a slash at its end.
    private(set) var path = ""
    private(set) var usesTLS = true
    /// Paths of files in PEM format.
    private(set) var authorities: String?
    private(set) var certificate: String?
    private(set) var key: String?
    private(set) var user: String?
    private(set) var passwordFile: String?

    private static let scheme = "etcd://"
    private static let defaultPort: UInt16 = 2_379
    /// A key is this prefix and about 150 bytes.
    private static let pathByteLimit = 400

    init(_ text: String) throws(SyncStorageError) {
        guard text.hasPrefix(Self.scheme) else { throw Self.error("it does not begin with \(Self.scheme)") }
        let parts = text.dropFirst(Self.scheme.count).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let address = parts[0].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        for endpoint in address[0].split(separator: ",", omittingEmptySubsequences: false) {
            endpoints.append(try Self.endpoint(endpoint))
        }
        if address.count > 1 { path = try Self.path(address[1]) }
        if parts.count > 1 {
            for option in parts[1].split(separator: "&", omittingEmptySubsequences: false) { try take(option) }
        }
        guard (certificate == nil) == (key == nil) else { throw Self.error("a client certificate needs both cert and key") }
        guard (user == nil) == (passwordFile == nil) else { throw Self.error("a user needs both user and password-file") }
        guard usesTLS || (authorities ?? certificate) == nil else { throw Self.error("ca, cert, and key are of no use with tls=off") }
    }

    private static func endpoint(_ text: Substring) throws(SyncStorageError) -> Endpoint {
        var (host, port) = (text, text.suffix(0))
        if text.hasPrefix("["), let end = text.lastIndex(of: "]") {
            host = text[text.index(after: text.startIndex)..<end]
            port = text[text.index(after: end)...]
        } else if let colon = text.lastIndex(of: ":") {
            (host, port) = (text[..<colon], text[colon...])
        }
        let isBracketed = host.startIndex != text.startIndex
        var number: UInt16? = defaultPort
        if !port.isEmpty { number = port.hasPrefix(":") ? UInt16(port.dropFirst()) : nil }
        guard let number, number > 0 else { throw error("the port of one of its hosts is not a number from 1 to 65535") }
        guard let endpoint = Endpoint(host: String(host), port: Int(number), isBracketed: isBracketed) else {
            throw error("it has no host, or one that is neither a name nor an address")
        }
        return endpoint
    }

    private static func path(_ text: Substring) throws(SyncStorageError) -> String {
        let parts = try decoded(text, of: "path").split(separator: "/")
        let path = parts.map { "/" + $0 }.joined()
        guard path.utf8.count <= pathByteLimit else { throw error("its path is longer than \(pathByteLimit) bytes") }
        return path
    }

    private mutating func take(_ option: Substring) throws(SyncStorageError) {
        let parts = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        let value = try Self.decoded(parts.count > 1 ? parts[1] : "", of: name)
        guard !value.isEmpty else { throw Self.error("its option \(name) has no value") }
        switch name {
        case "tls":
            guard value == "off" else { throw Self.error("its option tls has another value than off") }
            usesTLS = false
        case "ca": authorities = try Self.absolute(value, of: name)
        case "cert": certificate = try Self.absolute(value, of: name)
        case "key": key = try Self.absolute(value, of: name)
        case "user": user = value
        case "password-file": passwordFile = try Self.absolute(value, of: name)
        default: throw Self.error("it has an option other than tls, ca, cert, key, user, and password-file")
        }
    }

    private static func absolute(_ path: String, of option: String) throws(SyncStorageError) -> String {
        guard path.hasPrefix("/") else { throw error("the path in its option \(option) is not absolute") }
        return path
    }

    private static func decoded(_ text: Substring, of part: String) throws(SyncStorageError) -> String {
        guard let text = String(text).removingPercentEncoding,
            text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
        else { throw error("its \(part) has control characters, or a % without two digits") }
        return text
    }

    private static func error(_ problem: String) -> SyncStorageError {
        SyncStorageError(.failed, "this is not the location of a storage in etcd: \(problem)")
    }
}

extension String {
    /// Whether this is an address of `family`, in its usual notation.
    fileprivate func isAddress(_ family: Int32) -> Bool {
        var address = in6_addr()
        // An address of either family fits.
        return unsafe inet_pton(family, self, &address) == 1
    }
}
#endif
