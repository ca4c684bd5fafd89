// SPDX-License-Identifier: Apache-2.0
internal import CValet
internal import Foundation
internal import Valet

/// The functions that every type of valet has, on the arguments of C.
///
/// The header states the requirements for pointers. NULL, lengths and the type of a handle are checked here.
enum ValetCall<Object: ValetProtocol> {
    static func isEqual(_ first: OpaquePointer?, _ second: OpaquePointer?) -> Bool {
        if unsafe first == nil && second == nil { return true }
        guard let first = try? unsafe Handle.object(first, as: Object.self), let second = try? unsafe Handle.object(second, as: Object.self)
        else { return false }
        return first == second
    }

    static func hash(_ handle: OpaquePointer?) -> UInt64 {
        guard let valet = try? unsafe Handle.object(handle, as: Object.self) else { return 0 }
        return UInt64(bitPattern: Int64(valet.hashValue))
    }

    static func describe(
        _ handle: OpaquePointer?, _ text: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ length: UnsafeMutablePointer<Int>?
    ) -> valet_status {
        unsafe CResult.returnText(text, length) { try unsafe Data(Handle.object(handle, as: Object.self).description.utf8) }
    }

    static func canAccess(_ handle: OpaquePointer?) -> Bool {
        // Before anything else: a lock of the Swift runtime may have been held by another thread of the parent.
        guard !isForkedChild else { return false }
        return deferringCancellation {
            guard let valet = try? unsafe Handle.object(handle, as: Object.self) else { return false }
            let (canAccess, reason) = ValetFailure.observingReason { valet.canAccessKeychain() }
            if !canAccess { FailureReason.store(reason) }
            return canAccess
        }
    }

    static func set(
        _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ value: UnsafeRawPointer?, _ valueLength: Int
    ) -> valet_status {
        unsafe store(handle, key, keyLength) { () throws(StatusError) in try unsafe CInput.bytes(value, valueLength) }
    }

    static func setString(
        _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ string: UnsafePointer<CChar>?, _ stringLength: Int
    ) -> valet_status {
        unsafe store(handle, key, keyLength) { () throws(StatusError) in try unsafe CInput.utf8(string, stringLength) }
    }

    private static func store(
        _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int,
        _ value: () throws(StatusError) -> UnsafeRawBufferPointer
    ) -> valet_status {
        status {
            let valet = try unsafe Handle.object(handle, as: Object.self)
            let key = try unsafe CInput.text(key, keyLength)
            var data = try unsafe Data(value())
            defer { data.wipe() }
            try valet.setObject(data, forKey: key)
        }
    }

    static func contains(
        _ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int, _ result: UnsafeMutablePointer<Bool>?
    ) -> valet_status {
        unsafe CResult.returnBool(result) {
            try unsafe Handle.object(handle, as: Object.self).containsObject(forKey: CInput.text(key, keyLength))
        }
    }

    static func remove(_ handle: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ keyLength: Int) -> valet_status {
        status { try unsafe Handle.object(handle, as: Object.self).removeObject(forKey: CInput.text(key, keyLength)) }
    }

    static func removeAll(_ handle: OpaquePointer?) -> valet_status {
        status { try unsafe Handle.object(handle, as: Object.self).removeAllObjects() }
    }

    static func migrate(
        _ destination: OpaquePointer?, matching query: UnsafePointer<valet_query_entry>?, _ queryCount: Int, _ removeOnCompletion: Bool
    ) -> valet_status {
        status {
            try unsafe Handle.object(destination, as: Object.self).migrateObjects(
                matching: queryDictionary(query, queryCount), removeOnCompletion: removeOnCompletion)
        }
    }

    static func migrate(_ destination: OpaquePointer?, from source: OpaquePointer?, _ removeOnCompletion: Bool) -> valet_status {
        status {
            try unsafe Handle.object(destination, as: Object.self).migrateObjects(
                from: Handle.object(source, as: Valet.self), removeOnCompletion: removeOnCompletion)
        }
    }
}

/// The handles of C.
///
/// Each is a pointer to an object that was retained once.
enum Handle {
    /// Stores a handle for a new object, or NULL if creating the object fails.
    static func create(
        in result: UnsafeMutablePointer<OpaquePointer?>?, _ make: () throws -> some AnyObject
    ) -> valet_status {
        // The pointer is NULL or points to the caller's variable.
        unsafe result?.pointee = nil
        return status {
            guard let result = unsafe result else { throw StatusError(valet_error_null_argument) }
            unsafe result.pointee = OpaquePointer(Unmanaged.passRetained(try make()).toOpaque())
        }
    }

    /// The object behind a handle.
    static func object<Object: AnyObject>(_ handle: OpaquePointer?, as type: Object.Type = Object.self) throws(StatusError) -> Object {
        guard let handle = unsafe handle else { throw StatusError(valet_error_null_argument) }
        // The header requires that a handle is NULL or was created by the library and not freed yet.
        let any = unsafe Unmanaged<AnyObject>.fromOpaque(UnsafeRawPointer(handle)).takeUnretainedValue()
        guard let object = any as? Object else { throw StatusError(valet_error_wrong_handle) }
        return object
    }

    /// Releases the object of a handle.
    ///
    /// Does nothing for a handle of another type.
    static func free<Object: AnyObject>(_ handle: OpaquePointer?, as type: Object.Type) {
        deferringCancellation {
            guard let object = try? unsafe object(handle, as: type) else { return }
            // Balances the retain in `create`.
            unsafe Unmanaged.passUnretained(object).release()
        }
    }
}

/// A status that does not come from an error of Valet.
struct StatusError: Error {
    let status: valet_status

    init(status: valet_status) {
        self.status = status
    }

    /// Creates the error from a constant of the header.
    ///
    /// C's untyped constants are imported as `Int`.
    init(_ constant: Int) {
        status = valet_status(constant)
    }
}

/// Runs `body` with pthread_cancel() deferred until it returns.
///
/// Swift functions do not release locks and memory when a thread is canceled inside them.
func deferringCancellation<Result>(_ body: () -> Result) -> Result {
    var state: Int32 = 0
    // `state` is a local variable and outlives the calls.
    _ = unsafe pthread_setcancelstate(Int32(PTHREAD_CANCEL_DISABLE), &state)
    defer { _ = pthread_setcancelstate(state, nil) }
    return body()
}

/// Runs `body` and returns `valet_success`, or the status of the error it throws.
///
/// Does not run `body` in a forked child.
func status(_ body: () throws -> Void) -> valet_status {
    guard !isForkedChild else { return valet_status(valet_error_could_not_access_keychain) }
    return deferringCancellation { uninterruptedStatus(body) }
}

private func uninterruptedStatus(_ body: () throws -> Void) -> valet_status {
    let (result, reason) = ValetFailure.observingReason { Result { try body() } }
    guard case .failure(let error) = result else { return valet_status(valet_success) }
    FailureReason.store(addsReason(error) ? reason : nil)
    switch error {
    case let failure as StatusError: return failure.status
    case let error as KeychainError: return valet_status(valet_error_could_not_access_keychain + error.rawValue)
    case let error as MigrationError: return valet_status(valet_error_invalid_query + error.rawValue)
    // Valet throws no other errors.
    default: return valet_status(valet_error_could_not_access_keychain)
    }
}

/// Whether the keychain can have reported more than the status of this error says.
private func addsReason(_ error: any Error) -> Bool {
    switch error as? KeychainError {
    case .couldNotAccessKeychain, .userCancelled, .missingEntitlement: true
    case .itemNotFound, .emptyKey, .emptyValue: false
    case nil: error as? MigrationError == .removalFailed
    }
}
