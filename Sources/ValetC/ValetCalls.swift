// SPDX-License-Identifier: Apache-2.0
internal import CValet
internal import Foundation
internal import Valet

/// What the three sorts of valet have in common, so that it is translated to C once.
protocol ValetProtocol: AnyObject, Hashable, CustomStringConvertible {
    func canAccessKeychain() -> Bool
    func setObject(_ object: Data, forKey key: String) throws(KeychainError)
    func containsObject(forKey key: String) throws(KeychainError) -> Bool
    func removeObject(forKey key: String) throws(KeychainError)
    func removeAllObjects() throws(KeychainError)
    func migrateObjects(matching query: [String: AnyHashable], removeOnCompletion: Bool) throws
    func migrateObjects(from valet: Valet, removeOnCompletion: Bool) throws
}

extension Valet: ValetProtocol {}
extension SecureEnclaveValet: ValetProtocol {}
@available(tvOS, unavailable)
@available(watchOS, unavailable)
extension SinglePromptSecureEnclaveValet: ValetProtocol {}

/// The calls that every sort of valet has, with the arguments that C gives.
///
/// What a pointer must be is said in the header; NULL, lengths and the type of a handle are looked at here.
enum Call<Keeper: ValetProtocol> {
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
        unsafe Output.returnText(text, length) { try unsafe Data(Handle.object(handle, as: Keeper.self).description.utf8) }
    }

    static func canAccess(_ handle: OpaquePointer?) -> Bool {
        guard let keeper = try? unsafe Handle.object(handle, as: Keeper.self) else { return false }
        return keeper.canAccessKeychain()
    }

    static func set(
        _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeRawPointer?, _ valueLength: Int
    ) -> valet_status {
        unsafe store(handle, key, keyLength) { () throws(StatusError) in try unsafe Input.bytes(value, valueLength) }
    }

    static func setString(
        _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ string: UnsafePointer<CChar>?, _ stringLength: Int
    ) -> valet_status {
        unsafe store(handle, key, keyLength) { () throws(StatusError) in try unsafe Input.utf8(string, stringLength) }
    }

    private static func store(
        _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int,
        _ value: () throws(StatusError) -> UnsafeRawBufferPointer
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

/// The pointers that C holds: each is an object of ours, retained once.
enum Handle {
    /// Gives C a handle for the object; NULL if it cannot be made.
    static func give(
        to result: UnsafeMutablePointer<OpaquePointer?>?, _ make: () throws -> some AnyObject
    ) -> valet_status {
        // A result pointer is the caller's and points to room for a handle, or is NULL.
        unsafe result?.pointee = nil
        return statusAnswer {
            guard let result = unsafe result else { throw StatusError(valet_error_null_argument) }
            unsafe result.pointee = OpaquePointer(Unmanaged.passRetained(try make()).toOpaque())
        }
    }

    /// The object behind a handle.
    static func object<Object: AnyObject>(_ handle: OpaquePointer?, as type: Object.Type = Object.self) throws(StatusError) -> Object {
        guard let handle = unsafe handle else { throw StatusError(valet_error_null_argument) }
        // What is not NULL is a handle that was given and not yet freed: the header asks for no less.
        let any = unsafe Unmanaged<AnyObject>.fromOpaque(UnsafeRawPointer(handle)).takeUnretainedValue()
        guard let object = any as? Object else { throw StatusError(valet_error_wrong_handle) }
        return object
    }

    /// Gives up what C held; a handle of another type stays.
    static func free<Object: AnyObject>(_ handle: OpaquePointer?, as type: Object.Type) {
        guard let object = try? unsafe object(handle, as: type) else { return }
        // It was retained once when it was given.
        unsafe Unmanaged.passUnretained(object).release()
    }
}

/// Ends a call with a status that no error of Valet's stands for.
struct StatusError: Error {
    let status: valet_status

    init(status: valet_status) {
        self.status = status
    }

    /// A constant of the header: C's constants without a type come as Int.
    init(_ constant: Int) {
        status = valet_status(constant)
    }
}

/// What a call answers: success, or the status of what `body` threw.
func statusAnswer(_ body: () throws -> Void) -> valet_status {
    do {
        try body()
        return valet_status(valet_success)
    } catch let failure as StatusError {
        return failure.status
    } catch let error as KeychainError {
        return valet_status(valet_error_could_not_access_keychain + error.rawValue)
    } catch let error as MigrationError {
        return valet_status(valet_error_invalid_query + error.rawValue)
    } catch {
        // Valet throws nothing else. Should it, nothing is known but that it was not done.
        return valet_status(valet_error_could_not_access_keychain)
    }
}
