// SPDX-License-Identifier: Apache-2.0
#if Etcd && !canImport(Darwin)
import Contracts
import Foundation
import GRPCCore
import GRPCNIOTransportHTTP2Posix
import KeychainSync
import Synchronization
import Testing

@testable import KeychainSyncEtcd

/// What a server can answer that is not etcd, or is in the hands of an attacker.
@Suite("Servers that are not etcd", .timeLimit(.minutes(10)))
struct EtcdImpostorTests {
    @Test("The message of a server cannot control a terminal, and is bounded")
    func message() async throws {
        let text = "\u{1b}]0;owned\u{7}\u{1b}[2J\n\u{202e}" + String(repeating: "a", count: 3_000)
        try await Impostor(range: { _ in throw RPCError(code: .permissionDenied, message: text) }).run { storage in
            let error = try await #require(throws: SyncStorageError.self) { try await storage.list("") }
            #expect(error.code == .notPermitted)
            #expect(error.reason.utf8.count < 400)
            #expect(error.reason.unicodeScalars.allSatisfy { ![.control, .format].contains($0.properties.generalCategory) })
        }
    }

    @Test("A listing whose pages do not go forward ends")
    func pagesWithoutEnd() async throws {
        let range: Impostor.Range = { _ in
            var page = EtcdRangeResponse()
            page.kvs = [EtcdKeyValue(key: "/x/keychain-sync-1/zz")]
            page.more = true
            return page
        }
        try await Impostor(range: range).run { storage in
            let error = try await #require(throws: SyncStorageError.self) { try await storage.list("") }
            #expect(error.code == .unavailable)
        }
    }

    @Test("Keys of other programs that are too long for a page do not prevent a listing")
    func longKeys() async throws {
        let keyCount: Int64 = 6_000
        let name = SampleObjects.batch(1)
        let range: Impostor.Range = { request in
            // The last part of the key, after a zero byte for the next one, is the number of the key.
            let first = Int64(String(decoding: request.key.suffix(7).prefix(6), as: UTF8.self)).map { $0 + 1 } ?? 0
            let end = min(first + request.limit, keyCount)
            var page = EtcdRangeResponse()
            page.kvs = (first..<end).map { number in
                EtcdKeyValue(key: "/x/keychain-sync-1/" + String(repeating: "a", count: 1_000) + String(format: "%06ld", Int(number)))
            }
            page.more = end < keyCount
            if !page.more { page.kvs.append(EtcdKeyValue(key: "/x/keychain-sync-1/" + name)) }
            return page
        }
        try await Impostor(range: range).run { storage in
            let names = try await storage.list("")
            #expect(names == [name])
        }
    }

    @Test("A watch with a revision that no cluster reaches is given up, and the next one reports", arguments: [Int64.max, -1])
    func invalidRevision(_ revision: Int64) async throws {
        let watches = Mutex(0)
        let watch: Impostor.Watch = {
            let count = watches.withLock { count in
                count += 1
                return count
            }
            return EtcdWatchResponse(clusterID: 7, revision: count == 1 ? revision : 5)
        }
        try await Impostor(watch: watch).run { storage in
            var hints = storage.changes().makeAsyncIterator()
            #expect(await hints.next() != nil)
            #expect(watches.withLock(\.self) > 1)
        }
    }

    @Test("A watch of which a message is too large is not resumed at the same place, and the next one reports")
    func largeMessage() async throws {
        let watches = Mutex(0)
        let watch: Impostor.Watch = {
            let count = watches.withLock { count in
                count += 1
                return count
            }
            var response = EtcdWatchResponse(clusterID: 7, revision: 5)
            if count == 2 { response.cancelReason = String(repeating: "a", count: 5 << 20) }
            return response
        }
        try await Impostor(watch: watch).run { storage in
            var hints = storage.changes().makeAsyncIterator()
            for _ in 0..<2 { #expect(await hints.next() != nil) }
            #expect(watches.withLock(\.self) > 2)
        }
    }

    @Test("Watches that end at once are no reason to give no hints")
    func endedWatches() async throws {
        try await Impostor(watch: { EtcdWatchResponse(clusterID: 7, revision: 5) }, checkSeconds: 0.2).run { storage in
            var hints = storage.changes().makeAsyncIterator()
            for _ in 0..<3 { #expect(await hints.next() != nil) }
        }
    }
}

/// A server with the interface of etcd, and with answers of a test.
private struct Impostor: RegistrableRPCService {
    typealias Range = @Sendable (EtcdRangeRequest) throws -> EtcdRangeResponse
    typealias Watch = @Sendable () -> EtcdWatchResponse

    var range: Range = { _ in EtcdRangeResponse() }
    /// The only message of a watch, which then ends.
    var watch: Watch = { EtcdWatchResponse() }
    /// Seconds between hints without a watch.
    var checkSeconds = 3_600.0

    func registerMethods<Transport: ServerTransport>(with router: inout RPCRouter<Transport>) {
        router.registerHandler(
            forMethod: EtcdMethod.range.descriptor, deserializer: MessageDecoder<EtcdRangeRequest>(),
            serializer: MessageEncoder<EtcdRangeResponse>()
        ) { [range] request, _ in
            let response = try range(try await ServerRequest(stream: request).message)
            return StreamingServerResponse(single: ServerResponse(message: response))
        }
        router.registerHandler(
            forMethod: EtcdMethod.watch.descriptor, deserializer: MessageDecoder<EtcdWatchRequest>(),
            serializer: MessageEncoder<EtcdWatchResponse>()
        ) { [watch] _, _ in StreamingServerResponse(single: ServerResponse(message: watch())) }
    }

    /// Runs `body` with a storage in this server.
    func run(_ body: @Sendable (EtcdStorage) async throws -> Void) async throws {
        let transport = HTTP2ServerTransport.Posix(address: .ipv4(host: "127.0.0.1", port: 0), transportSecurity: .plaintext)
        let server = GRPCServer(transport: transport, services: [self])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.serve() }
            defer { group.cancelAll() }
            let port = try #require(await transport.listeningAddress.ipv4).port
            let options = EtcdServers.options { $0.checkSeconds = checkSeconds }
            try await body(EtcdStorage(location: "etcd://127.0.0.1:\(port)/x?tls=off", options: options))
        }
    }
}

extension EtcdKeyValue {
    fileprivate init(key: String) {
        self.init()
        self.key = Data(key.utf8)
    }
}

extension EtcdWatchResponse {
    fileprivate init(clusterID: UInt64, revision: Int64) {
        self.init()
        header.clusterID = clusterID
        header.revision = revision
        created = true
    }
}
#endif
