// SPDX-License-Identifier: Apache-2.0
internal import CValet
internal import Foundation
internal import Valet

/// What the three sorts of valet have in common, so that it is translated to C once.
protocol ValueKeeper: AnyObject, Hashable, CustomStringConvertible {
    func canAccessKeychain() -> Bool
    func setObject(_ object: Data, forKey key: String) throws(KeychainError)
    func containsObject(forKey key: String) throws(KeychainError) -> Bool
    func removeObject(forKey key: String) throws(KeychainError)
    func removeAllObjects() throws(KeychainError)
    func migrateObjects(matching query: [String: AnyHashable], removeOnCompletion: Bool) throws
    func migrateObjects(from valet: Valet, removeOnCompletion: Bool) throws
}

extension Valet: ValueKeeper {}
extension SecureEnclaveValet: ValueKeeper {}
@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension SinglePromptSecureEnclaveValet: ValueKeeper {}

/// The calls that every sort of valet has, with the arguments that C gives.
///
/// What a pointer must be is said in the header; NULL, lengths and the type of a handle are looked at here.
enum Call<Keeper: ValueKeeper> {
    static func isEqual(_ first: OpaquePointer?, _ second: OpaquePointer?) -> Bool {
        if unsafe first == nil && second == nil { return true }
        guard let first = try? unsafe Handle.object(first, as: Keeper.self), let second = try? unsafe Handle.object(second, as: Keeper.self)
        else { return false }
        return first == second
    }

    static func hash(_ handle: OpaquePointer?) -> UInt64 {
        guard let keeper = try? unsafe Handle.object(handle, as: Keeper.self) else { return 0 }
        return UInt64(bitPattern: Int64(keeper.hashValue))
    }

    static func describe(
        _ handle: OpaquePointer?, _ text: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ length: UnsafeMutablePointer<Int>?
    ) -> valet_status {
        unsafe Output.giveText(text, length) { try unsafe Data(Handle.object(handle, as: Keeper.self).description.utf8) }
    }

    static func canAccess(_ handle: OpaquePointer?) -> Bool {
        guard let keeper = try? unsafe Handle.object(handle, as: Keeper.self) else { return false }
        return keeper.canAccessKeychain()
    }

    static func set(
        _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeRawPointer?, _ valueLength: Int
    ) -> valet_status {
        unsafe store(handle, key, keyLength) { () throws(CallFailure) in try unsafe Input.bytes(value, valueLength) }
    }

    static func setString(
        _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ string: UnsafePointer<CChar>?, _ stringLength: Int
    ) -> valet_status {
        unsafe store(handle, key, keyLength) { () throws(CallFailure) in try unsafe Input.utf8(string, stringLength) }
    }

    private static func store(
        _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int,
        _ value: () throws(CallFailure) -> UnsafeRawBufferPointer
    ) -> valet_status {
        statusAnswer {
            let keeper = try unsafe Handle.object(handle, as: Keeper.self)
            let key = try unsafe Input.text(key, keyLength)
            var data = try unsafe Data(value())
            defer { data.wipe() }
            try keeper.setObject(data, forKey: key)
        }
    }

    static func contains(
        _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ result: UnsafeMutablePointer<Bool>?
    ) -> valet_status {
        unsafe Output.give(result) {
            try unsafe Handle.object(handle, as: Keeper.self).containsObject(forKey: Input.text(key, keyLength))
        }
    }

    static func remove(_ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int) -> valet_status {
        statusAnswer { try unsafe Handle.object(handle, as: Keeper.self).removeObject(forKey: Input.text(key, keyLength)) }
    }

    static func removeAll(_ handle: OpaquePointer?) -> valet_status {
        statusAnswer { try unsafe Handle.object(handle, as: Keeper.self).removeAllObjects() }
    }

    static func migrate(
        _ destination: OpaquePointer?, matching query: UnsafePointer<valet_query_entry>?, _ queryCount: Int, _ removeOnCompletion: Bool
    ) -> valet_status {
        statusAnswer {
            try unsafe Handle.object(destination, as: Keeper.self).migrateObjects(
                matching: queryDictionary(query, queryCount), removeOnCompletion: removeOnCompletion)
        }
    }

    static func migrate(_ destination: OpaquePointer?, from source: OpaquePointer?, _ removeOnCompletion: Bool) -> valet_status {
        statusAnswer {
            try unsafe Handle.object(destination, as: Keeper.self).migrateObjects(
                from: Handle.object(source, as: Valet.self), removeOnCompletion: removeOnCompletion)
        }
    }
}
