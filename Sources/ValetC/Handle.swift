// SPDX-License-Identifier: Apache-2.0
internal import CValet

/// The pointers that C holds: each is an object of ours, retained once.
enum Handle {
    /// Gives C a handle for the object; NULL if it cannot be made.
    static func give(
        to result: UnsafeMutablePointer<OpaquePointer?>?, _ make: () throws -> some AnyObject
    ) -> valet_status {
        // A result pointer is the caller's and points to room for a handle, or is NULL.
        unsafe result?.pointee = nil
        return statusAnswer {
            guard let result = unsafe result else { throw CallFailure(valet_error_null_argument) }
            unsafe result.pointee = OpaquePointer(Unmanaged.passRetained(try make()).toOpaque())
        }
    }

    /// The object behind a handle.
    static func object<Object: AnyObject>(_ handle: OpaquePointer?, as type: Object.Type = Object.self) throws(CallFailure) -> Object {
        guard let handle = unsafe handle else { throw CallFailure(valet_error_null_argument) }
        // What is not NULL is a handle that was given and not yet freed: the header asks for no less.
        let any = unsafe Unmanaged<AnyObject>.fromOpaque(UnsafeRawPointer(handle)).takeUnretainedValue()
        guard let object = any as? Object else { throw CallFailure(valet_error_wrong_handle) }
        return object
    }

    /// Gives up what C held; a handle of another type stays.
    static func free<Object: AnyObject>(_ handle: OpaquePointer?, as type: Object.Type) {
        guard let object = try? unsafe object(handle, as: type) else { return }
        // It was retained once when it was given.
        unsafe Unmanaged.passUnretained(object).release()
    }
}
