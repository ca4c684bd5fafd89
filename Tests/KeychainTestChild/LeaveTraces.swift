// SPDX-License-Identifier: Apache-2.0
import Foundation
import KeychainCore
import KeychainEngine
import KeychainServices
import KeychainTestSupport
import Logging
import Valet

extension ChildCommand {
    /// Stores, overwrites, and removes every marked text, and repeats that for each line of input.
    static func storeMarkers(_ arguments: [String]) throws {
        let valet = try testValet(Marker.valetIdentifier.rawValue)
        repeat {
            try storeMarkersOnce(valet)
            say("ready")
        } while readLine() != nil
    }

    static func storeMarkersOnce(_ valet: Valet) throws {
        try valet.setString(Marker.overwrittenValue.rawValue, forKey: Marker.key.rawValue)
        try valet.setString(Marker.value.rawValue, forKey: Marker.key.rawValue)
        try valet.setString(Marker.removedValue.rawValue, forKey: Marker.removedKey.rawValue)
        try valet.removeObject(forKey: Marker.removedKey.rawValue)
        try valet.setString(Marker.damagedValue.rawValue, forKey: "damaged")
        guard try valet.string(forKey: Marker.key.rawValue) == Marker.value.rawValue else { throw BadArguments() }
        try leaveTracesOfEveryAttribute()
    }

    private static func leaveTracesOfEveryAttribute() throws {
        let value = Data(Marker.value.rawValue.utf8)
        try addAndRead([
            kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: Marker.service.rawValue,
            kSecAttrAccount as String: Marker.account.rawValue, kSecAttrLabel as String: Marker.label.rawValue,
            kSecAttrComment as String: Marker.comment.rawValue, kSecAttrGeneric as String: Data(Marker.generic.rawValue.utf8),
            kSecAttrAccessGroup as String: Marker.group.rawValue, kSecValueData as String: value,
        ])
        try addAndRead([
            kSecClass as String: kSecClassInternetPassword, kSecAttrServer as String: Marker.server.rawValue,
            kSecAttrAccount as String: Marker.account.rawValue, kSecAttrPath as String: Marker.path.rawValue,
            kSecAttrSecurityDomain as String: Marker.securityDomain.rawValue, kSecAttrSynchronizable as String: true,
            kSecValueData as String: value,
        ])
    }

    private static func addAndRead(_ attributes: [String: Any]) throws {
        let status = SecItemAdd(attributes as CFDictionary, nil)
        guard status == errSecSuccess || status == errSecDuplicateItem else { throw BadStatus(status: status) }
        var query = attributes
        query[kSecValueData as String] = nil
        query[kSecReturnData as String] = true
        var result: CFTypeRef?
        // The pointer is used during the call only.
        let found = unsafe SecItemCopyMatching(query as CFDictionary, &result)
        guard found == errSecSuccess, result as? Data == attributes[kSecValueData as String] as? Data else {
            throw BadStatus(status: found)
        }
        // Removed and added again, because removed items must not leave traces either.
        query[kSecReturnData as String] = nil
        let removed = SecItemDelete(query as CFDictionary)
        guard removed == errSecSuccess else { throw BadStatus(status: removed) }
        let added = SecItemAdd(attributes as CFDictionary, nil)
        guard added == errSecSuccess else { throw BadStatus(status: added) }
    }

    private struct BadStatus: Error {
        let status: OSStatus
    }
}

extension ChildCommand {
    /// [leak]: does the same as `leave-traces` and many failing calls, and prints the log at every level and each error in every form.
    ///
    /// Repeats that for each line of input. `leak` is a planted fault: a value is logged too.
    static func logEverything(_ arguments: [String]) throws {
        LoggingSystem.bootstrap { label in
            var handler = StreamLogHandler.standardOutput(label: label)
            handler.logLevel = .trace
            return handler
        }
        if arguments.first == "leak" { Logger(label: "leak").trace("stored \(Marker.value.rawValue)") }
        var configuration = try KeychainConfiguration.fromEnvironment()
        configuration.useTestPolicy(in: configuration.storePath.replacing("/keychain.db", with: ""))
        let keychain = LocalKeychain(
            configuration: configuration,
            entitlements: try CallerEntitlements.ofThisProcess().resolve())
        try CurrentKeychain.with(keychain) { try logEveryCall() }
    }

    private static func logEveryCall() throws {
        let valet = try testValet(Marker.valetIdentifier.rawValue)
        repeat {
            // Damaged in the second round.
            sayErrors { _ = try valet.string(forKey: "damaged") }
            sayErrors { try storeMarkersOnce(valet) }
            sayErrors { _ = try valet.string(forKey: Marker.removedKey.rawValue) }
            sayErrors { try valet.setString("", forKey: Marker.key.rawValue) }
            sayErrors {
                try valet.migrateObjects(matching: [kSecAttrService as String: Marker.service.rawValue], removeOnCompletion: false)
            }
            failRequests()
            try changePasscodes(valet)
            say("ready")
        } while readLine() != nil
    }

    /// Calls with attributes whose values are invalid or have the wrong type.
    private static func failRequests() {
        let wrong: [(CFString, Any)] = [
            (kSecAttrAccessible, Marker.label.rawValue), (kSecAttrLabel, 5), (kSecAttrPort, Marker.path.rawValue),
            (kSecAttrCreator, Marker.comment.rawValue), (kSecAttrCreationDate, Marker.service.rawValue),
            (kSecMatchLimit, Marker.account.rawValue), (kSecReturnData, Marker.value.rawValue),
            (kSecValuePersistentRef, Marker.value.rawValue),
            (kSecAttrSynchronizable, Marker.label.rawValue), (kSecValueData, Marker.value.rawValue),
            (kSecAttrAccount, [Marker.account.rawValue]),
            (kSecAttrService, Marker.service.rawValue + "\0"), (kSecUseAuthenticationUI, Marker.key.rawValue),
            (kSecClass, Marker.value.rawValue), (kSecAttrAccessControl, Marker.value.rawValue),
            (kSecUseAuthenticationContext, Marker.value.rawValue),
        ]
        for (attribute, value) in wrong {
            var request: [String: Any] = [
                kSecClass as String: kSecClassGenericPassword as String, kSecAttrService as String: Marker.service.rawValue,
                kSecAttrAccount as String: Marker.account.rawValue, kSecValueData as String: Data(Marker.value.rawValue.utf8),
            ]
            request[attribute as String] = value
            var result: CFTypeRef?
            // The pointers are used during the calls only.
            let statuses = unsafe [
                SecItemAdd(request as CFDictionary, &result), SecItemCopyMatching(request as CFDictionary, &result),
                SecItemUpdate(request as CFDictionary, request as CFDictionary), SecItemDelete(request as CFDictionary),
            ]
            for status in statuses { say("\(status) \(SecCopyErrorMessageString(status, nil) as String? ?? "")") }
        }
    }

    private static func changePasscodes(_ valet: Valet) throws {
        let session = try KeychainSession.current()
        let (passcode, wrong) = (Marker.passcode.rawValue, Marker.wrongPasscode.rawValue)
        sayErrors { try session.setPasscode(passcode) }
        sayErrors { try session.setPasscode(wrong) }
        sayErrors { try session.lock(includingAfterFirstUnlock: true) }
        sayErrors { _ = try valet.string(forKey: Marker.key.rawValue) }
        sayErrors { try valet.setString(Marker.value.rawValue, forKey: Marker.key.rawValue) }
        sayErrors { try session.unlock(passcode: wrong) }
        sayErrors { try session.changePasscode(from: wrong, to: passcode) }
        sayErrors { try session.unlock(passcode: passcode) }
        sayErrors { _ = try valet.string(forKey: Marker.key.rawValue) }
        sayErrors { try session.removePasscode(wrong) { _ in true } }
        sayErrors { try session.removePasscode(passcode) { _ in true } }
    }

    private static func sayErrors(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            let status = (error as? KeychainSessionError).map { " (\($0.status))" } ?? ""
            say("\(error) | \(String(reflecting: error)) | \(error.localizedDescription) | \((error as NSError).userInfo)\(status)")
        }
    }
}
