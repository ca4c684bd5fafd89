// SPDX-License-Identifier: Apache-2.0
#if SecretService && !canImport(Darwin)
internal import KeychainCore

/// An error that a caller on the bus receives.
///
/// Each has a text: libsecret cannot handle an error without one.
struct BusError: Error, Equatable {
    let name: String
    let text: String

    init(_ name: String, _ text: String) {
        self.name = name
        self.text = text
    }

    init(_ failure: KeychainFailure) {
        switch failure.status {
        case .interactionNotAllowed: self = .isLocked
        case .itemNotFound: self = .noSuchObject("the object does not exist any more")
        default: self.init("org.freedesktop.DBus.Error.Failed", failure.reason)
        }
    }

    static let isLocked = BusError("org.freedesktop.Secret.Error.IsLocked", "the keychain is locked")
    /// Not "access denied": programs know what to do about an item that is locked.
    static let isForeign = BusError(
        isLocked.name, "the item is one of another program, and no person has allowed this program to use it")
    static let noSession = BusError("org.freedesktop.Secret.Error.NoSession", "the session does not exist")
    static let invalidCaller = BusError("org.freedesktop.DBus.Error.AccessDenied", "Invalid caller")

    static func noSuchObject(_ text: String) -> BusError { BusError("org.freedesktop.Secret.Error.NoSuchObject", text) }
    static func notSupported(_ text: String) -> BusError { BusError("org.freedesktop.DBus.Error.NotSupported", text) }
    static func invalidArguments(_ text: String) -> BusError { BusError("org.freedesktop.DBus.Error.InvalidArgs", text) }
    static func failed(_ text: String) -> BusError { BusError("org.freedesktop.DBus.Error.Failed", text) }
    static func limitsExceeded(_ text: String) -> BusError { BusError("org.freedesktop.DBus.Error.LimitsExceeded", text) }

    /// The error for a path without an object.
    ///
    /// Not `UnknownObject`: SecretStorage before 3.4.0 takes only this one for "not found".
    static func noObject(at path: String) -> BusError {
        BusError(noObjectName, "Object does not exist at path \"\(path)\"")
    }

    private static let noObjectName = "org.freedesktop.DBus.Error.UnknownMethod"

    /// Whether there was no reply in time.
    var isNoReply: Bool { name == "org.freedesktop.DBus.Error.NoReply" || name == "org.freedesktop.DBus.Error.Timeout" }

    /// Whether it says that a path has no object.
    var isNoObject: Bool { name == Self.noObjectName }
}

extension BusError {
    /// Runs `body`, and turns the failures of the keychain into errors for the caller.
    static func converting<Result>(_ body: () throws(KeychainFailure) -> Result) throws(BusError) -> Result {
        do throws(KeychainFailure) {
            return try body()
        } catch {
            throw BusError(error)
        }
    }
}
#endif
