// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
internal import GRPCCore
internal import SwiftProtobuf

/// A method of etcd with its types.
struct EtcdMethod<Request: Message & Sendable, Response: Message & Sendable>: Sendable {
    let descriptor: MethodDescriptor

    fileprivate init(_ service: String, _ method: String) {
        descriptor = MethodDescriptor(fullyQualifiedService: "etcdserverpb." + service, method: method)
    }
}

extension EtcdMethod<EtcdRangeRequest, EtcdRangeResponse> {
    static var range: Self { Self("KV", "Range") }
}

extension EtcdMethod<EtcdDeleteRangeRequest, EtcdDeleteRangeResponse> {
    static var remove: Self { Self("KV", "DeleteRange") }
}

extension EtcdMethod<EtcdTxnRequest, EtcdTxnResponse> {
    static var transaction: Self { Self("KV", "Txn") }
}

extension EtcdMethod<EtcdWatchRequest, EtcdWatchResponse> {
    static var watch: Self { Self("Watch", "Watch") }
}

extension EtcdMethod<EtcdAuthenticateRequest, EtcdAuthenticateResponse> {
    static var authenticate: Self { Self("Auth", "Authenticate") }
}

/// Encodes messages for gRPC.
struct MessageEncoder<Value: Message>: MessageSerializer {
    func serialize<Bytes: GRPCContiguousBytes>(_ message: Value) throws -> Bytes {
        let bytes: [UInt8] = try message.serializedBytes()
        return Bytes(bytes)
    }
}

/// Decodes messages for gRPC.
struct MessageDecoder<Value: Message>: MessageDeserializer {
    func deserialize<Bytes: GRPCContiguousBytes>(_ bytes: Bytes) throws -> Value {
        // The buffer is valid during the call, and is copied.
        unsafe try Value(serializedBytes: bytes.withUnsafeBytes { unsafe Array($0) })
    }
}
#endif
