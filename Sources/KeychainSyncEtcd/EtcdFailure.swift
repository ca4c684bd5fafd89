// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
internal import GRPCCore
internal import KeychainSync

/// Why a member of the cluster has not performed a call, and what helps.
enum EtcdFailure: Error {
    /// Another member may succeed, and with the code `.unavailable` also a later call; the code is for the case that none does.
    case transient(SyncStorageError.Code, String)
    /// The token of the user has expired, or there is none.
    case notAuthenticated
    /// The request or the response is larger than gRPC accepts, here or in etcd.
    case tooLarge(String, isCertain: Bool)
    /// etcd has refused the call, and no repetition helps.
    case refused(SyncStorageError.Code, String)
    /// The call was not sent, because of a problem on this device.
    case notSent(SyncStorageError)

    init(_ error: any Error) {
        let reason = Self.text(of: error)
        guard let error = error as? RPCError else {
            self = .transient(.unavailable, reason)
            return
        }
        // Messages of etcd: it uses one code for several errors, and its own clients compare the messages too.
        let has = { (message: String) in error.message.hasPrefix(message) }
        switch error.code {
        // gRPC reports a response that is too large in this way, among others.
        case .internalError: self = .tooLarge(reason, isCertain: false)
        case .unauthenticated: self = .notAuthenticated
        case .invalidArgument where has("etcdserver: user name is empty") || has("etcdserver: revision of auth store is old"):
            self = .notAuthenticated
        case .invalidArgument where has("etcdserver: authentication failed"): self = .refused(.notPermitted, reason)
        case .permissionDenied: self = .refused(.notPermitted, reason)
        case .resourceExhausted where has("etcdserver: mvcc: database space exceeded"):
            self = .refused(.full, "the space quota of the cluster is used up")
        // Of etcd's gRPC library: the request is far above etcd's limit, or the response is.
        case .resourceExhausted where !has("etcdserver: "): self = .tooLarge(reason, isCertain: true)
        case .unavailable: self = Self.disconnection(error, reason)
        case .deadlineExceeded, .cancelled, .aborted, .unknown, .resourceExhausted:
            self = .transient(.unavailable, reason)
        default: self = .refused(.failed, reason)
        }
    }

    /// The reason why there is no connection, in the words of a person where TLS has its own.
    private static func disconnection(_ error: RPCError, _ reason: String) -> EtcdFailure {
        let text = rawText(of: error)
        if text.contains("CERTIFICATE_VERIFY_FAILED") || text.contains("failedToValidateHostname") {
            return .transient(.failed, "its certificate is not signed by a trusted authority, has expired, or names another host")
        }
        if text.contains("ALERT") && text.contains("CERTIFICATE") {
            return .transient(.notPermitted, "it does not accept the client certificate, or requires one")
        }
        return .transient(.unavailable, reason)
    }

    /// The text of an error and of those that caused it; a server can have written it, so it is made fit for a terminal.
    static func text(of error: any Error) -> String { printable(rawText(of: error)) }

    /// The first 200 characters of a text, without those that control a terminal.
    static func printable(_ text: String) -> String {
        let characters = text.prefix(200).unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: Character("?")
            default: Character(scalar)
            }
        }
        return String(characters)
    }

    private static func rawText(of error: any Error) -> String {
        let (message, cause): (String, (any Error)?) =
            switch error {
            case let error as RPCError: (error.message, error.cause)
            case let error as RuntimeError: (error.message, error.cause)
            default: (String(describing: error), nil)
            }
        return message + (cause.map { " " + rawText(of: $0) } ?? "")
    }
}
#endif
