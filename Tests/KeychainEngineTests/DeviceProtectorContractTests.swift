// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainTestSupport
import KeychainTesting
import Testing

/// A good protector with one fault put in front of it.
private struct BrokenProtector: DeviceProtector {
    enum Fault: CaseIterable {
        case shortensSecret, givesAnotherEachTime, givesNoRandomOne, saysNotFound, namesNothing, servesEveryStore, hidesLocation
    }

    let good: InMemoryProtector
    let fault: Fault?

    var kind: DeviceProtectorKind { good.kind }

    func location(for storeID: StoreID) -> String { fault == .hidesLocation ? "" : good.location(for: storeID) }

    func deviceSecret(for storeID: StoreID) throws(KeychainFailure) -> SecretBytes {
        switch fault {
        case .shortensSecret: return try SecretBytes(randomByteCount: DeviceSecret.byteCount - 1)
        case .givesAnotherEachTime: return try SecretBytes(randomByteCount: DeviceSecret.byteCount)
        case .givesNoRandomOne: return try unsafe SecretBytes(byteCount: DeviceSecret.byteCount) { _ in }  // Zeros as they are.
        case .saysNotFound where storeID != good.storeID: throw KeychainFailure(.itemNotFound, "nothing in memory")
        case .namesNothing where storeID != good.storeID: throw KeychainFailure(.notAvailable, "nothing there")
        case .servesEveryStore: return try good.deviceSecret(for: good.storeID)
        default: return try good.deviceSecret(for: storeID)
        }
    }
}

@Suite("Every protector keeps the promises of a protector")
struct DeviceProtectorContractTests {
    private let storeID = StoreID.random()
    private let otherStoreID = StoreID.random()

    @Test("The key file")
    func keyFile() throws {
        try withTemporaryDirectory { directory in
            let keyFile = KeyFile(directory: directory, storePath: directory + "/keychain.db")
            try keyFile.prepare(SecretBytes(randomByteCount: DeviceSecret.byteCount), for: storeID)
            try keyFile.confirm(for: storeID)
            #expect(DeviceProtectorContract.violations(of: keyFile, storeID: storeID) == [])
            #expect(DeviceProtectorContract.violationsWhereMissing(keyFile, storeID: otherStoreID) == [])
        }
    }

    @Test("The systemd credential, which is one for all stores of a service")
    func systemdCredential() throws {
        try withTemporaryDirectory { directory in
            let credential = SystemdCredential(credentialsDirectory: directory)
            #expect(DeviceProtectorContract.violationsWhereMissing(credential, storeID: storeID) == [])
            try Data((0..<32).map { _ in UInt8.random(in: 0...255) })
                .write(to: URL(filePath: directory + "/" + SystemdCredential.credentialName))
            #expect(DeviceProtectorContract.violations(of: credential, storeID: storeID) == [])
        }
    }

    @Test("The protector in memory")
    func inMemory() throws {
        let protector = try InMemoryProtector()
        #expect(DeviceProtectorContract.violations(of: protector, storeID: protector.storeID) == [])
        #expect(DeviceProtectorContract.violationsWhereMissing(protector, storeID: storeID) == [])
    }

    private func violations(_ fault: BrokenProtector.Fault?) throws -> [String] {
        let protector = BrokenProtector(good: try InMemoryProtector(), fault: fault)
        return DeviceProtectorContract.violations(of: protector, storeID: protector.good.storeID)
            + DeviceProtectorContract.violationsWhereMissing(protector, storeID: storeID)
    }

    @Test("A protector that breaks a promise is found out", arguments: BrokenProtector.Fault.allCases)
    private func broken(fault: BrokenProtector.Fault) throws {
        #expect(try violations(fault) != [])
    }

    @Test("A protector that does nothing wrong behind the same wrapper is not")
    func wrapped() throws {
        #expect(try violations(nil) == [])
    }
}
