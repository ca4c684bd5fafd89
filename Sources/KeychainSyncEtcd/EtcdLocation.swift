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

        var isIPv6: Bool { host.contains(":") }
        var isIPv4: Bool {
            let parts = host.split(separator: ".", omittingEmptySubsequences: false)
            return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
        }

        var description: String { (isIPv6 ? "[\(host)]" : host) + ":\(port)" }
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
    private static let defaultPort = 2_379
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
        let isValid = host.utf8.allSatisfy { character in
            switch character {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "."):
                true
            case UInt8(ascii: ":"): isBracketed
            default: false
            }
        }
        guard !host.isEmpty, isValid, isBracketed == host.contains(":") else { throw error("it has no host, or an invalid one") }
        guard !port.isEmpty else { return Endpoint(host: String(host), port: defaultPort) }
        guard port.hasPrefix(":"), let number = UInt16(port.dropFirst()), number > 0 else {
            throw error("the port of \(host) is not a number from 1 to 65535")
        }
        return Endpoint(host: String(host), port: Int(number))
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
            text.unicodeScalars.allSatisfy({ !$0.properties.isWhitespace && $0.properties.generalCategory != .control })
        else { throw error("its \(part) has spaces, control characters, or a % without two digits") }
        return text
    }

    private static func error(_ problem: String) -> SyncStorageError {
        SyncStorageError(.failed, "this is not the location of a storage in etcd: \(problem)")
    }
}
#endif
